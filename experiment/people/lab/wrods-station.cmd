@echo off
rem Opens the study full screen for a station; Alt+F4 closes it.
set "PROFILE=%LocalAppData%\wrods-station"
for %%B in (
  "%ProgramFiles%\Google\Chrome\Application\chrome.exe"
  "%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe"
  "%LocalAppData%\Google\Chrome\Application\chrome.exe"
  "%ProgramFiles(x86)%\Microsoft\Edge\Application\msedge.exe"
  "%ProgramFiles%\Microsoft\Edge\Application\msedge.exe"
) do if exist %%B (
  start "" %%B SWITCHES --user-data-dir="%PROFILE%" PAGE
  exit /b
)
echo Neither Chrome nor Edge was found.
pause
