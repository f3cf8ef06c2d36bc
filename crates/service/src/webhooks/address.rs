//! The addresses to which webhooks may be delivered: those of the internet, and those of networks that the operator allows.
//!
//! The addresses of a host are checked each time that a connection is opened, and the connection is opened to an address that was
//! checked. So a name cannot be made to resolve to another address after the check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::error::{Error, Result};

const MAX_URL_BYTES: usize = 2_000;

/// The host has only addresses to which webhooks are not delivered.
#[derive(Debug, thiserror::Error)]
#[error("the address is private")]
pub(super) struct PrivateAddressError;

/// The addresses to which connections may be opened.
#[derive(Clone, Debug)]
pub(super) struct AddressFilter {
    /// Networks that are allowed although they are not part of the internet.
    pub(super) networks: Arc<[IpNet]>,
    /// Whether addresses of the internet are allowed.
    pub(super) allows_public: bool,
}

impl AddressFilter {
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address)) || (self.allows_public && is_public(address))
    }
}

impl Resolve for AddressFilter {
    fn resolve(&self, name: Name) -> Resolving {
        let filter = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| filter.allows(address.ip())).collect();
            if allowed.is_empty() {
                return Err(PrivateAddressError.into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns the address in a URL whose host is an address. Such hosts are not resolved.
pub(super) fn ip_address_in(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

/// Parses the URL of a webhook. Without encryption, only the allowed networks can be reached.
pub(super) fn parse_url(text: &str, networks: &Arc<[IpNet]>) -> Result<Url> {
    let invalid = |message: &str| Error::invalid("url", message);
    if text.len() > MAX_URL_BYTES {
        return Err(invalid("`url` must have at most 2,000 bytes"));
    }
    let url = Url::parse(text).map_err(|_| invalid("`url` must be a URL such as https://app.example/hooks"))?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(invalid("`url` must not contain a user name, a password or a fragment"));
    }
    let allows_public = url.scheme() == "https";
    if !allows_public && (url.scheme() != "http" || networks.is_empty()) {
        return Err(invalid("`url` must begin with https://"));
    }
    let filter = AddressFilter { networks: Arc::clone(networks), allows_public };
    if ip_address_in(&url).is_some_and(|address| !filter.allows(address)) {
        return Err(
            invalid("`url` has a private address, to which the server does not send webhooks").code("private_address")
        );
    }
    Ok(url)
}

/// Whether an address is part of the internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_reserved = match (first, second, third) {
        // "This network", shared addresses of providers, protocol assignments, 6to4 relays, benchmarks, and addresses for future use.
        (0 | 240.., ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) => true,
        _ => false,
    };
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Translated addresses (NAT64) contain the address of the destination.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments with tunnels (Teredo), documentation, 6to4, documentation.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // Only these addresses are assigned to the internet.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Arc<[IpNet]> {
        list.iter().map(|network| network.parse().unwrap()).collect()
    }

    #[test]
    fn only_addresses_of_the_internet_are_allowed() {
        let filter = AddressFilter { networks: networks(&[]), allows_public: true };
        for public in ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::1.1.1.1", "::ffff:1.1.1.1"] {
            assert!(filter.allows(public.parse().unwrap()), "{public}");
        }
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
        ];
        for private in private {
            assert!(!filter.allows(private.parse().unwrap()), "{private}");
        }
        let filter = AddressFilter { networks: networks(&["10.0.0.0/8", "::1/128"]), allows_public: false };
        for (address, is_allowed) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("::1", true), ("127.0.0.1", false), ("1.1.1.1", false)]
        {
            assert_eq!(filter.allows(address.parse().unwrap()), is_allowed, "{address}");
        }
    }

    #[test]
    fn urls_with_private_addresses_are_rejected() {
        let none = networks(&[]);
        for url in ["https://app.example/hooks?a=b", "https://1.1.1.1/", "https://app.example:8443"] {
            assert!(parse_url(url, &none).is_ok(), "{url}");
        }
        for url in [
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "http://app.example/",
            "ftp://app.example/",
            "https://ana:secret@app.example/",
            "https://app.example/#part",
            "app.example",
            "",
        ] {
            assert!(parse_url(url, &none).is_err(), "{url}");
        }
        assert!(parse_url(&format!("https://app.example/{}", "a".repeat(2_000)), &none).is_err());
        let local = networks(&["127.0.0.0/8"]);
        assert!(
            parse_url("http://127.0.0.1:8080/hooks", &local).is_ok()
                && parse_url("http://app.example/", &local).is_ok()
        );
        assert_eq!(parse_url("http://1.1.1.1/", &local).unwrap_err().code, "private_address");
    }
}
