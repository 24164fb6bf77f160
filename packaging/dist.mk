# The source archive and Debian's package, included by the makefile; the archive needs no PETSc

ARCHIVE := build/petscspmv-$(VERSION).tar.gz

dist:
	@packaging/dist archive $(VERSION)
	@echo $(ARCHIVE)

debian:
	@packaging/dist debian $(VERSION)

deb: dist
	@rm -rf build/deb && mkdir -p build/deb && tar -xzf $(ARCHIVE) -C build/deb && cp $(ARCHIVE) build/deb/petscspmv_$(VERSION).orig.tar.gz
	@cd build/deb/petscspmv-$(VERSION) && packaging/dist debian $(VERSION) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -b
	@ls build/deb/*.deb
