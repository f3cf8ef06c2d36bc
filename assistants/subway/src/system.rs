//! The network that is built in, made once.

use std::sync::LazyLock;

use threadkeep_transit::{Names, Network};

use crate::vocabulary::VOCABULARY;

/// All lines and stations, as `cargo xtask subway-network` wrote them.
const TABLE: &str = include_str!("../data/network.tsv");

static NETWORK: LazyLock<Network> =
    LazyLock::new(|| Network::parse(TABLE).expect("the built-in table is generated, and a test reads it"));

static NAMES: LazyLock<Names<'static>> = LazyLock::new(|| Names::new(&NETWORK, VOCABULARY));

/// The lines and stations of the subway and of the Staten Island Railway.
pub fn network() -> &'static Network {
    &NETWORK
}

/// What the stations are called.
pub fn names() -> &'static Names<'static> {
    &NAMES
}
