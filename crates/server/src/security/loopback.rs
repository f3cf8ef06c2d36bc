//! Checks that a request without a key was sent by a program on this machine.
//!
//! Checking the peer address is not enough: a page in a browser can reach the loopback interface by DNS rebinding, and behind a
//! local proxy all clients appear local. So the headers Host and Origin are checked too, and requests with headers of proxies are
//! rejected. Because proxies need not add headers, the primary protection is the token (`local`).

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, Uri, header};

use crate::error::ApiError;

/// Headers that proxies add.
const PROXY_HEADERS: [HeaderName; 8] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-envoy-external-address"),
    HeaderName::from_static("cf-connecting-ip"),
];

/// Rejects requests that may have been sent from another machine, or by a page of another origin.
pub(super) fn check(peer: SocketAddr, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    if !peer.ip().to_canonical().is_loopback() {
        return Err(loopback_error("remote clients need an API key; create one with `threadkeep keys create`"));
    }
    if let Some(name) = PROXY_HEADERS.iter().find(|name| headers.contains_key(*name)) {
        return Err(loopback_error(&format!("forwarded requests (header {name}) need an API key")));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    let named_hosts: Vec<&str> = host.into_iter().chain(target).collect();
    if named_hosts.is_empty() || hosts.next().is_some() || !named_hosts.iter().all(|name| is_loopback(name)) {
        return Err(loopback_error("requests without an API key must have localhost or a loopback address as Host"));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_own = |origin: &str| {
        let origin_host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        origin_host.is_some() && origin_host == host
    };
    if !origins.all(|origin| origin.to_str().is_ok_and(is_own)) {
        return Err(loopback_error("requests from pages of other origins need an API key"));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(loopback_error("requests from pages of other origins need an API key"));
    }
    Ok(())
}

/// Returns the host to which the client sent the request.
pub(super) fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))
}

/// Whether the browser's headers prove that a page of this server sent the request.
pub(super) fn is_own_page(uri: &Uri, headers: &HeaderMap) -> bool {
    let header_text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match header_text(header::ORIGIN) {
        Some(origin) => is_own_origin(origin, uri, headers),
        None => header_text(HeaderName::from_static("sec-fetch-site")) == Some("same-origin"),
    }
}

/// Whether an origin is that of the host to which the client sent the request.
pub(crate) fn is_own_origin(origin: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    let origin_host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    origin_host.is_some() && origin_host == host(uri, headers)
}

fn loopback_error(message: &str) -> ApiError {
    ApiError::forbidden("loopback_only", message)
}

/// Whether a host, with or without a port, is `localhost` or a loopback address.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_are_recognised() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:80", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.evil.example", "10.0.0.1", "example.com:80", "[::2]", "127.0.0.1.nip.io", "0.0.0.0"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
