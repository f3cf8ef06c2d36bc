use std::collections::HashMap;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension};
use threadkeep_core::{Access, Owner, Scope, UserId};

use crate::connection::Shared;
use crate::error::Result;

/// The numbers that a scope's tenant and user have in the file. A name that is not in the file has number 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeNumbers {
    pub(crate) tenant_no: i64,
    /// The user's number; `None` for a tenant's scope.
    pub(crate) user_no: Option<i64>,
}

impl ScopeNumbers {
    /// Returns the scope's access to data of `owner_no`, an owner of the same tenant. Equivalent to [`Scope::access`].
    pub(crate) fn access(self, owner_no: i64) -> Access {
        match self.user_no {
            None => Access::Full,
            Some(user_no) if user_no == owner_no => Access::Full,
            Some(_) if owner_no == self.tenant_no => Access::Append,
            Some(_) => Access::None,
        }
    }
}

/// Returns the name of an owner in the table `owners`: the user, or `""` for the tenant.
pub(crate) fn stored_name(owner: &Owner) -> &str {
    match owner {
        Owner::Tenant => "",
        Owner::User(user) => user.as_str(),
    }
}

/// Parses an owner from its name in the table `owners`.
pub(crate) fn parse_owner(user: String) -> Result<Owner> {
    Ok(if user.is_empty() { Owner::Tenant } else { Owner::User(UserId::new(user)?) })
}

/// Finds the numbers of a scope; 0 for a name that is not in the file.
pub(crate) fn resolve_scope(shared: &Shared, connection: &Connection, scope: &Scope) -> Result<ScopeNumbers> {
    let tenant = scope.tenant_id().as_str();
    let tenant_no = find(shared, connection, tenant, "")?;
    let user_no = match scope {
        Scope::Tenant(_) => None,
        Scope::User(_, user) => Some(find(shared, connection, tenant, user.as_str())?),
    };
    Ok(ScopeNumbers { tenant_no, user_no })
}

/// Finds an owner's number; 0 if it has none.
pub(crate) fn find(shared: &Shared, connection: &Connection, tenant: &str, user: &str) -> Result<i64> {
    let cache = shared.owners.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = cache.get(tenant).and_then(|users| users.get(user)) {
        return Ok(*number);
    }
    drop(cache);
    let sql = "SELECT no FROM owners WHERE tenant = ?1 AND user = ?2";
    let number = connection.prepare_cached(sql)?.query_row([tenant, user], |row| row.get(0)).optional()?;
    // Inside a transaction, the row may still be rolled back, so the number must not be cached.
    if let Some(number) = number
        && connection.is_autocommit()
    {
        let mut cache = shared.owners.write().unwrap_or_else(PoisonError::into_inner);
        // Limits the memory for files with very many users.
        if cache.values().map(HashMap::len).sum::<usize>() > 100_000 {
            cache.clear();
        }
        cache.entry(tenant.to_owned()).or_default().insert(user.to_owned(), number);
    }
    Ok(number.unwrap_or(0))
}

/// Finds an owner's number or assigns one. A tenant gets its number before its users.
pub(crate) fn find_or_insert(shared: &Shared, connection: &Connection, tenant: &str, user: &str) -> Result<i64> {
    let number = find(shared, connection, tenant, user)?;
    if number != 0 {
        return Ok(number);
    }
    if !user.is_empty() {
        find_or_insert(shared, connection, tenant, "")?;
    }
    connection.prepare_cached("INSERT INTO owners (tenant, user) VALUES (?1, ?2)")?.execute([tenant, user])?;
    Ok(connection.last_insert_rowid())
}

/// Returns the owner with the given number.
pub(crate) fn find_by_number(connection: &Connection, owner_no: i64) -> Result<Owner> {
    let sql = "SELECT user FROM owners WHERE no = ?1";
    parse_owner(connection.prepare_cached(sql)?.query_row([owner_no], |row| row.get(0))?)
}
