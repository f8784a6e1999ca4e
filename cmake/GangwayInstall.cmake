# What `make install`, the Debian package and the wheel (deploy/package) hold. docs/install.md is the user's side of it.
include(GNUInstallDirs)
# Only the executable is built for it, not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

install(TARGETS gangway RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT gangway)
# Where the executable looks for them: ../share/gangway/python.
install(DIRECTORY python/gangway python/jax_plugins DESTINATION ${CMAKE_INSTALL_DATADIR}/gangway/python COMPONENT gangway
  FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT gangway)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT gangway)
install(DIRECTORY docs deploy examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT gangway
  PATTERN __pycache__ EXCLUDE PATTERN CMakeLists.txt EXCLUDE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gangway)
set(CPACK_PACKAGE_VENDOR "The Gangway authors")
set(CPACK_PACKAGE_CONTACT "The Gangway authors <gangway@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Partitions JAX programs for a mesh of devices and runs them from one controller")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL gangway)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends: as the libraries that the executable is linked with
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3 (>= 3.11)")
include(CPack)
