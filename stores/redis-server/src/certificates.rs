use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::supervisor::Supervisor;

/// A certificate for servers and clients at 127.0.0.1, and the authority that issued it. The files are removed when this value is dropped.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Creates an authority and a certificate.
    ///
    /// # Panics
    /// The files cannot be written.
    #[must_use]
    pub fn create() -> Self {
        let files = Self { folder: Supervisor::make_folder() };
        let (authority_key, key) = (generate_key(), generate_key());
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "authority of a test");
        let root = authority.self_signed(&authority_key).expect("a valid certificate");
        let issuer = Issuer::new(authority, authority_key);
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a valid name");
        let certificate = params.signed_by(&key, &issuer).expect("a valid certificate");
        let write = |path: PathBuf, text: String| fs::write(path, text).expect("the folder can be written");
        write(files.authority(), root.pem());
        write(files.certificate(), certificate.pem());
        write(files.key(), key.serialize_pem());
        files
    }

    /// Returns the file with the certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    /// Returns the file with the certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("certificate.pem")
    }

    /// Returns the file with the private key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.join("key.pem")
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn generate_key() -> KeyPair {
    KeyPair::generate().expect("the system has random numbers")
}
