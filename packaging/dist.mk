# The source archive and Debian's package, included by the makefile; they need no PETSc

NAME := petscspmv-$(VERSION)
# A clone's tracked files; of an unpacked archive all but what was made there
SOURCE_FILES := if [ "`git rev-parse --show-toplevel 2>/dev/null`" = "`pwd -P`" ]; then git ls-files; else find . -type f ! -path './build/*' ! -path './lib/*' ! -path './debian/*' | cut -c3-; fi
# The time of the last commit; in an unpacked archive, of its files
SOURCE_TIME  := if [ "`git rev-parse --show-toplevel 2>/dev/null`" = "`pwd -P`" ]; then git log -1 --format=%ct; else stat -c %Y include/petscspmv.h; fi

# The same bytes each time: sorted, without owners, as old as the last commit
dist:
	@mkdir -p build
	@$(SOURCE_FILES) | LC_ALL=C sort | tar -c --files-from=- --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@`$(SOURCE_TIME)` \
	  --transform='s,^,$(NAME)/,' | gzip -9n >build/$(NAME).tar.gz
	@echo "build/$(NAME).tar.gz"

# The folder debian at the place where Debian's tools look for it
debian:
	@rm -rf debian && cp -r packaging/debian debian
	@sed -e 's/@version@/$(VERSION)/' -e "s/@date@/$$(LC_ALL=C date -u -R -d @"$$($(SOURCE_TIME))")/" packaging/debian/changelog >debian/changelog

deb: dist
	@rm -rf build/deb && mkdir -p build/deb && tar -xzf build/$(NAME).tar.gz -C build/deb && cp build/$(NAME).tar.gz build/deb/petscspmv_$(VERSION).orig.tar.gz
	@$(MAKE) -s -C build/deb/$(NAME) debian
	@cd build/deb/$(NAME) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -b
	@ls build/deb/*.deb
