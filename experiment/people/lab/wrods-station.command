#!/bin/sh
# Opens the study full screen for a station; Cmd+Q closes it.
profile="$HOME/Library/Application Support/wrods-station"
for browser in "Google Chrome" "Chromium" "Microsoft Edge"; do
  program="/Applications/$browser.app/Contents/MacOS/$browser"
  if [ -x "$program" ]; then
    exec "$program" SWITCHES --user-data-dir="$profile" PAGE
  fi
done
echo "Neither Chrome, Chromium nor Edge was found." >&2
exit 1
