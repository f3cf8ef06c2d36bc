use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::Result;

use super::{App, Status};
use crate::clock::clock;
use crate::failure::Failure;
use crate::local_token;

/// The default address of a server.
const LISTEN: &str = "127.0.0.1:7437";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Open the web page of `threadkeep serve` in the browser, signed in
///
/// The address contains a sign-in code that expires after two minutes, not the server's token. The page exchanges the code for
/// a cookie that is valid for one day, for this server only. If no browser is found, the address is printed. This works until
/// the first key is created (`threadkeep keys create`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep open                 the server on this machine
  threadkeep open general         chat with this assistant
  threadkeep open --print         only print the address")]
pub(crate) struct Arguments {
    /// The assistant to chat with [default: the only one that is served; otherwise the page shows all of them]
    assistant: Option<String>,
    /// The address of the server [default: 127.0.0.1:7437]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The token that was passed to `serve --token`. Other users can read it in the process list; prefer THREADKEEP_TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Print the address instead of opening it
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let settings = &app.settings;
    let listen = arguments.listen.or_else(|| settings.get("THREADKEEP_LISTEN")).unwrap_or_else(|| LISTEN.to_owned());
    let address = browser_address(&listen)?;
    let scheme = if settings.get("THREADKEEP_TLS_CERT").is_some() { "https" } else { "http" };
    let found = local_token::find(arguments.token.as_deref(), settings)?;
    // The address becomes part of the browser's history and the process list, so it contains a short-lived code instead of
    // the token.
    let pass = found.token.pass(clock(app.global.now).now());
    let assistant = arguments.assistant.as_deref().map(|name| format!("&assistant={}", percent_encoded(name)));
    let url = format!("{scheme}://{address}/v1/session#token={pass}{}", assistant.unwrap_or_default());
    if !arguments.print {
        check_listening(&address).map_err(|error| {
            let failure = Failure::system_error(format!("no server responds at {address}: {error}"));
            failure.hint("start one with `threadkeep serve`, or specify its address with --listen")
        })?;
        let url_to_open = url.clone();
        if has_screen() && tokio::task::spawn_blocking(move || webbrowser::open(&url_to_open)).await?.is_ok() {
            app.output.note(format_args!("opened {scheme}://{address} in the browser"));
            return Ok(Status::Done);
        }
        app.output.note("no browser found: open this address in a browser within two minutes");
    }
    if app.output.is_json() {
        app.output.json(&serde_json::json!({ "url": url }))?;
    } else {
        app.output.line(url)?;
    }
    Ok(Status::Done)
}

/// Returns the address at which a browser on this machine reaches a server that listens on `listen`.
fn browser_address(listen: &str) -> Result<String> {
    let invalid = || Failure::usage(format!("invalid server address `{listen}`: expected HOST:PORT"));
    let Ok(mut address) = listen.parse::<SocketAddr>() else {
        let (host, port) = listen.rsplit_once(':').ok_or_else(invalid)?;
        let is_host =
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        if !is_host || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(invalid().into());
        }
        return Ok(listen.to_owned());
    };
    if address.port() == 0 {
        return Err(invalid().hint("use the port that `serve` printed when it started").into());
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    Ok(address.to_string())
}

/// Whether there is a screen for a browser window. Without a screen, some browsers start and exit silently.
fn has_screen() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let names = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
    cfg!(any(windows, target_os = "macos")) || names.iter().any(is_set)
}

/// Checks that a server listens on an address.
fn check_listening(address: &str) -> std::io::Result<()> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Percent-encodes text for the fragment of a URL.
fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_address_is_reachable_from_this_machine() {
        for (listen, address) in [
            ("127.0.0.1:7437", "127.0.0.1:7437"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("localhost:7999", "localhost:7999"),
        ] {
            assert_eq!(browser_address(listen).unwrap(), address);
        }
        for wrong in ["", "localhost", "127.0.0.1:0", "localhost:x", "a/b:1", ":1", "localhost:0"] {
            assert!(browser_address(wrong).is_err(), "{wrong}");
        }
        assert_eq!(percent_encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }
}
