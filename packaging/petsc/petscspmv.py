import config.package

class Configure(config.package.Package):
  def __init__(self, framework):
    config.package.Package.__init__(self, framework)
    self.download               = ['petscspmv.tar.gz'] # a placeholder: the user gives the archive, see consistencyChecks()
    self.functions              = []
    self.includes               = []
    self.precisions             = ['single','double']
    self.requires32bitintblas   = 0
    self.skippackagewithoptions = 1
    self.useddirectly           = 0
    self.linkedbypetsc          = 0
    self.builtafterpetsc        = 1
    return

  def setupDependencies(self, framework):
    config.package.Package.setupDependencies(self, framework)
    self.sharedLibraries = framework.require('PETSc.options.sharedLibraries',self)
    self.deps            = [self.mpi]
    return

  def consistencyChecks(self):
    config.package.Package.consistencyChecks(self)
    if self.argDB['download-petscspmv'] and not isinstance(self.argDB['download-petscspmv'],str):
      raise RuntimeError('Give the source archive of PetscSpMV: --download-petscspmv=/path/petscspmv-<version>.tar.gz (made by "make dist" in its sources)')
    return

  def Install(self):
    import os
    if not self.checkSharedLibrariesEnabled():
      raise RuntimeError('PetscSpMV requires shared libraries, remove --with-shared-libraries=0')
    # PETSc loads lib/libpetscspmv by this name, and finds the library's registration function by it
    if self.argDB['with-library-name-suffix']:
      raise RuntimeError('PetscSpMV cannot be loaded by a PETSc with --with-library-name-suffix')
    # With a prefix the package is built after PETSc has been installed there
    if self.argDB['prefix'] and not 'package-prefix-hash' in self.argDB:
      prefix = os.path.abspath(os.path.expanduser(self.argDB['prefix']))
      barg   = 'PETSC_DIR='+prefix+' PETSC_ARCH=""'
    else:
      prefix = os.path.join(self.petscdir.dir,self.arch)
      barg   = 'PETSC_DIR=${PETSC_DIR} PETSC_ARCH=${PETSC_ARCH}'
    barg += ' prefix='+prefix
    self.include = [os.path.join(prefix,'include')]
    self.lib     = [os.path.join(prefix,'lib','libpetscspmv.'+self.setCompilers.sharedLibraryExt)]
    self.addPost(self.packageDir, [barg+' ${OMAKE} '+barg+' install'])
    return self.installDir
