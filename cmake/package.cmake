# `cmake --install` and `cpack`. What is installed finds nothing by its place, so a prefix may be moved.
include(GNUInstallDirs)
set(data_folder ${CMAKE_INSTALL_DATADIR}/redspine)
install(TARGETS redspine RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs DESTINATION ${data_folder})
install(FILES launch/train.sbatch launch/hosts.example launch/loss.awk
  DESTINATION ${data_folder}/launch)
install(FILES launch/completion.bash RENAME redspine
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# A Debian package of a program for the processor that built it would not run on others.
if(REDSPINE_PORTABLE)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_PACKAGE_CONTACT "Redspine developers")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed training of GPT-style transformers")
  set(CPACK_PACKAGE_DESCRIPTION
    "Redspine trains GPT-style transformers on many machines, by data and tensor parallelism over MPI.
It reads one YAML file per run, and its checkpoints are those of Hugging Face transformers.
It needs a processor with AVX2, and uses AVX-512 where the processor has it.")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  # dpkg-shlibdeps finds the libraries; mpirun, and orted, which a rank alone starts, are programs.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
  # What `redspine bench` compares with.
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS libopenblas0-openmp)
  include(CPack)
endif()
