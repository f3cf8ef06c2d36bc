//! Calls of the server's own to what is outside: an issuer's keys, a collector of traces.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Url};

/// Through which proxy the server reaches what is outside. This machine is always reached directly.
#[derive(Clone, PartialEq, Eq)]
pub struct OutgoingProxy {
    /// Its address, which may hold a name and a password.
    pub url: String,
    /// What is reached without it, as in the variable `NO_PROXY`: names of hosts and domains, addresses, a comma between two.
    pub exceptions: Option<String>,
}

impl fmt::Debug for OutgoingProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingProxy").field("exceptions", &self.exceptions).finish_non_exhaustive()
    }
}

/// Makes a client for one place. `None` where the proxy is none, or TLS cannot be set up.
pub(crate) fn client(to: &Url, proxy: Option<&OutgoingProxy>, timeout: Duration) -> Option<Client> {
    let tls = threadkeep::models::client_tls().ok()?;
    let client = Client::builder().tls_backend_preconfigured(tls).timeout(timeout).redirect(Policy::none()).no_proxy();
    let Some(proxy) = proxy.filter(|_| !is_here(to)) else { return client.build().ok() };
    let exceptions = proxy.exceptions.as_deref().and_then(NoProxy::from_string);
    client.proxy(Proxy::all(&proxy.url).ok()?.no_proxy(exceptions)).build().ok()
}

/// Whether a place is on this machine.
pub(crate) fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
