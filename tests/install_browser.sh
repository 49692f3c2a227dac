#!/bin/sh
# What the browser tests need from outside: playwright in the given Python, and a Chromium.
#   sh tests/install_browser.sh .venv/bin/python [FILE that is touched where both are there]
# Changes the system only if OXX_INSTALL_BROWSER=1 says so; what would be installed is said before.
# Never fails: where something cannot be had, the tests say so and are skipped.
python=$1
stamp=${2:-/dev/null}
packages='chromium fonts-dejavu-core'

skipped() {
  echo "$1: the browser tests will be skipped${2:-}" >&2
  exit 0
}

has_browser() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

"$python" -c 'import playwright' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check 'playwright>=1.45' ||
  skipped 'playwright does not install here'
if ! has_browser; then
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] ||
    skipped 'no Chromium here, and only root on Debian can install one'
  [ "${OXX_INSTALL_BROWSER:-}" = 1 ] ||
    skipped 'no Chromium here' "; OXX_INSTALL_BROWSER=1 lets apt-get install it on this system: $packages"
  echo "OXX_INSTALL_BROWSER=1: apt-get installs on this system: $packages" >&2
  # shellcheck disable=SC2086  # two packages
  { apt-get install -y -qq --no-install-recommends $packages ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; }; } \
    >/dev/null 2>&1 || skipped 'Chromium does not install here'
fi
touch "$stamp"
