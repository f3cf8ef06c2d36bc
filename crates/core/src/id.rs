use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{StoreError, limits};

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Creates a version 7 UUID, which sorts by the time `at` and contains 74 of the random bits.
            #[must_use]
            pub fn v7(at: crate::Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
            }

            /// Derives an id from a name: a version 8 UUID from the name's SHA-256, the same for the same name.
            #[must_use]
            pub fn from_name(name: &[u8]) -> Self {
                use sha2::Digest;
                let digest = sha2::Sha256::digest(name);
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&digest[..16]);
                Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = StoreError;

            fn from_str(text: &str) -> Result<Self, StoreError> {
                Uuid::parse_str(text).map(Self).map_err(|_| StoreError::invalid($field, "not a UUID"))
            }
        }
    };
}

uuid_id!(
    /// The id of a thread, unique in its tenant. Any UUID; generated ids are version 7.
    ThreadId,
    "thread id"
);
uuid_id!(
    /// The id of a message, unique in its thread. Any UUID; generated ids are version 7.
    MessageId,
    "message id"
);

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        ///
        /// 1 to 200 bytes of UTF-8 without control characters.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Box<str>);

        impl $name {
            fn new_checked(name: impl Into<String>) -> Result<Self, StoreError> {
                let name = name.into();
                limits::check_name($field, &name)?;
                Ok(Self(name.into_boxed_str()))
            }

            /// Returns the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = StoreError;

            fn from_str(text: &str) -> Result<Self, StoreError> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new_checked(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_id!(
    /// The name of a tenant: one customer of an application, isolated from all others.
    ///
    /// One name is reserved: the internal tenant contains the server's API keys and the audit log. [`TenantId::new`] and `parse`
    /// reject it, so that no API and no command can access it. [`TenantId::from_stored`] and deserialisation accept it, for names
    /// in stores and backups.
    TenantId,
    "tenant"
);

/// The name of the internal tenant.
const INTERNAL: &str = "threadkeep";

impl TenantId {
    /// Creates a tenant id from a caller's name.
    ///
    /// # Errors
    /// `Invalid` if it is empty, contains control characters or is reserved, `LimitExceeded` for more than 200 bytes.
    pub fn new(name: impl Into<String>) -> Result<Self, StoreError> {
        let tenant = Self::new_checked(name)?;
        if tenant.is_internal() {
            return Err(StoreError::invalid(
                "tenant",
                format!("the name `{INTERNAL}` is reserved for keys and the audit log"),
            ));
        }
        Ok(tenant)
    }

    /// Creates a tenant id from a name in a store or a backup. Accepts the reserved name.
    ///
    /// # Errors
    /// The same as [`TenantId::new`], except for the reserved name.
    pub fn from_stored(name: impl Into<String>) -> Result<Self, StoreError> {
        Self::new_checked(name)
    }

    /// Returns the tenant that contains the API keys and the audit log.
    #[must_use]
    pub fn internal() -> Self {
        Self(INTERNAL.into())
    }

    /// Whether this is the tenant that contains the API keys and the audit log.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        &*self.0 == INTERNAL
    }
}
name_id!(
    /// The name of a user in a tenant.
    UserId,
    "user"
);

impl UserId {
    /// Creates a user id.
    ///
    /// # Errors
    /// `Invalid` if it is empty or contains control characters, `LimitExceeded` for more than 200 bytes.
    pub fn new(name: impl Into<String>) -> Result<Self, StoreError> {
        Self::new_checked(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_tenant_is_reserved_except_in_stored_names() {
        let internal = TenantId::internal();
        for refused in [TenantId::new(internal.as_str()), internal.as_str().parse()] {
            assert!(matches!(refused, Err(StoreError::Invalid { field: "tenant", .. })), "{refused:?}");
        }
        assert!(crate::Scope::tenant("threadkeep").is_err() && crate::Scope::user("threadkeep", "me").is_err());
        assert_eq!(TenantId::from_stored("threadkeep").unwrap(), internal);
        assert_eq!(serde_json::from_str::<TenantId>("\"threadkeep\"").unwrap(), internal);
        for other in ["threadkeep2", "Threadkeep", "thread"] {
            assert!(!TenantId::new(other).unwrap().is_internal(), "{other}");
        }
    }
}
