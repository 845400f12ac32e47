#!/bin/sh
# Prints the path of a Chromium for the tests of the page. Where there is none, Debian's is installed; the standard error says what that is.
set -eu
for name in chromium google-chrome google-chrome-stable; do
  if command -v "$name"; then
    exit
  fi
done
if ! command -v apt-get > /dev/null; then
  echo "The tests of the page need Chromium, and it can be installed by apt alone: install it, so that it is on the PATH as chromium." >&2
  exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
  as_root="sudo"
fi
{
  $as_root apt-get --quiet --quiet update
  echo "There is no Chromium here. These packages are installed:"
  apt-get install --simulate --no-install-recommends chromium fonts-dejavu-core | sed -n 's/^Inst /  /p'
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet install --yes --no-install-recommends chromium fonts-dejavu-core
} >&2
command -v chromium
