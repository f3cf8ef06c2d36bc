//! The full-screen view, in a pseudo terminal.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{Cli, TIMEOUT};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// The program in a terminal.
struct Terminal {
    child: Child,
    controller: File,
    device: OwnedFd,
    output: Arc<Mutex<Output>>,
}

struct Output {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    fn open(cli: &Cli, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let device = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&device, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || device.try_clone().unwrap();
        let mut command = cli.command(arguments);
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        drop(command);
        let controller = File::from(controller);
        let output = Arc::new(Mutex::new(Output { screen: vt100::Parser::new(ROWS, COLUMNS, 0), bytes: Vec::new() }));
        let (shared, mut reader) = (Arc::clone(&output), controller.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let mut output = shared.lock().unwrap();
                output.screen.process(&buffer[..length]);
                output.bytes.extend_from_slice(&buffer[..length]);
            }
        });
        Self { child, controller, device, output }
    }

    fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).unwrap();
    }

    fn screen(&self) -> String {
        self.output.lock().unwrap().screen.screen().contents()
    }

    fn bytes(&self) -> Vec<u8> {
        self.output.lock().unwrap().bytes.clone()
    }

    fn wait_for(&self, text: &str) {
        let started = Instant::now();
        while !self.screen().contains(text) {
            assert!(started.elapsed() < TIMEOUT, "`{text}` did not appear:\n{}", self.screen());
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the program ends. The terminal must be as before. Returns the exit code.
    fn wait_for_end(&mut self) -> Option<i32> {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < TIMEOUT, "the program did not end:\n{}", self.screen());
            sleep(Duration::from_millis(10));
        };
        let modes = tcgetattr(&self.device).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG), "{modes:?}");
        while self.output.lock().unwrap().screen.screen().alternate_screen() {
            assert!(started.elapsed() < TIMEOUT, "the first screen did not come back");
            sleep(Duration::from_millis(10));
        }
        let output = self.output.lock().unwrap();
        let screen = output.screen.screen();
        assert!(!screen.hide_cursor() && !screen.bracketed_paste());
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Errors are ignored: the program has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_conversation_is_found_read_copied_and_exported() {
    let cli = Cli::with_garden();
    let mut terminal = Terminal::open(&cli, &["browse"]);
    terminal.wait_for("2 conversations, newest first");
    terminal.wait_for("A raised bed for the yard");
    terminal.press("/brick");
    // The unfinished word finds `bricks`.
    terminal.wait_for("1 message found");
    terminal.press("\r\r");
    terminal.wait_for("Found by words: bricks");
    terminal.wait_for("assistant · 2026-04-02 09:01 · #5 · planner · found");
    terminal.wait_for("And when do I sow the carrots?");
    terminal.press("c");
    terminal.wait_for("copied message #5");
    let copied = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(copied.contains("\u{1b}]52;c;Q2Fycm90cyBuZWVkIDMwIGNt"), "{copied:?}");
    for (name, start) in [("garden.md", "# A raised bed for the yard\n"), ("garden.jsonl", "{\"threadkeep\":")] {
        terminal.press("e");
        terminal.wait_for("Export to: threadkeep-019dd000");
        terminal.press(&format!("\u{15}{name}\r"));
        terminal.wait_for(&format!("exported 7 messages to {name}"));
        assert!(std::fs::read_to_string(cli.path(name)).unwrap().starts_with(start), "{name}");
    }
    terminal.press("e");
    terminal.wait_for("Export to:");
    terminal.press("\u{15}garden.md\r");
    terminal.wait_for("garden.md exists");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end(), Some(0));
}

#[test]
fn the_terminal_is_restored_however_the_view_ends() {
    let cli = Cli::with_garden();
    for (key, signal, code) in [("\u{3}", "", Some(0)), ("", "TERM", Some(0)), ("", "INT", Some(130))] {
        let mut terminal = Terminal::open(&cli, &["browse"]);
        terminal.wait_for("2 conversations");
        terminal.press(key);
        if !signal.is_empty() {
            let id = terminal.child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        }
        assert_eq!(terminal.wait_for_end(), code, "{key:?} {signal}");
    }
}

#[test]
fn stored_text_cannot_control_the_terminal() {
    let cli = Cli::new();
    let harmful = b"before \x1b]0;owned\x07 \x1b[2J\x9b2J after \xe2\x80\xae";
    let harmful = String::from_utf8_lossy(harmful);
    let appended = cli.run_with_input(&["append", "evil\u{202e}", "--create", "--author", "Eve"], harmful.as_bytes());
    assert_eq!(appended.code, Some(0), "{appended}");
    let mut terminal = Terminal::open(&cli, &["browse", "owned"]);
    terminal.wait_for("1 message found");
    terminal.press("\r");
    terminal.wait_for("Esc back");
    // Keys for messages have no effect before the messages are there.
    terminal.wait_for("Eve (user)");
    terminal.press("c");
    terminal.wait_for("copied message #1");
    terminal.press("q");
    assert_eq!(terminal.wait_for_end(), Some(0));
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!bytes.contains("]0;owned\u{7}") && !bytes.contains('\u{202e}'), "{bytes:?}");
}

#[test]
fn a_terminal_is_required() {
    let cli = Cli::with_garden();
    for arguments in [&["browse"][..], &["browse", "--json"]] {
        let output = cli.run(arguments);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{output}");
        assert!(output.err.contains("requires a terminal") && output.err.contains("threadkeep threads"), "{output}");
    }
    let cli = Cli::new();
    let mut terminal = Terminal::open(&cli, &["browse"]);
    terminal.wait_for("not found");
    assert_eq!(terminal.wait_for_end(), Some(1));
}
