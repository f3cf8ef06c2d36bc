//! The key of a ledger. Without the key, no one can test whether the ledger contains a name.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::private;

const BYTES: usize = 32;

/// A key for hashes of names.
pub(super) struct Key(hmac::Key);

/// Returns the path of a ledger's key file.
pub(crate) fn key_file(ledger: &Path) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(".key");
    PathBuf::from(name)
}

impl Key {
    /// Reads the key of a ledger. Returns `None` if the ledger has no key yet.
    pub(super) fn find(ledger: &Path) -> io::Result<Option<Self>> {
        let mut text = String::new();
        match std::fs::File::open(key_file(ledger)) {
            Ok(file) => file.take(1024).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = text.trim();
        if bytes.len() != 2 * BYTES || !bytes.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the key is not 64 hexadecimal digits"));
        }
        Ok(Some(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes.to_ascii_lowercase().as_bytes()))))
    }

    /// Creates the key of a ledger. The caller must hold the ledger's lock.
    pub(super) fn create(ledger: &Path) -> io::Result<Self> {
        let mut file = private::new_file(&key_file(ledger))?;
        writeln!(file, "{}", random_hex::<BYTES>()?)?;
        file.sync_all()?;
        private::sync_folder(ledger)?;
        Self::find(ledger)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Returns the keyed hash of a sequence of texts, in hexadecimal digits.
    pub(super) fn hash(&self, texts: &[&str]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        for text in texts {
            // Length prefixes make the encoding of a sequence unambiguous.
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        hex(context.sign().as_ref())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Returns random bytes as hexadecimal digits.
pub(super) fn random_hex<const LENGTH: usize>() -> io::Result<String> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("the system's random number generator failed"))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
