#!/usr/bin/env bash
# configuration_page_test.sh PROGRAM PAGE: is the committed PAGE what PROGRAM prints?
set -euo pipefail
if ! "$1" | diff -u "$2" -; then
  echo "docs/configuration.md is not that of launch/config/fields.cpp; make it again by" >&2
  echo "  $1 >$2" >&2
  exit 1
fi
