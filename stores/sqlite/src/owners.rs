use std::collections::HashMap;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension};
use threadkeep_core::{Access, Owner, Scope, UserId};

use crate::connection::Shared;
use crate::error::Result;

/// A scope in the file's numbers. A number is 0 where the file has never heard of the name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeNumbers {
    pub(crate) tenant_no: i64,
    /// The user's number; `None` for a tenant's scope.
    pub(crate) user_no: Option<i64>,
}

impl ScopeNumbers {
    /// What the scope may do with what `owner_no` of the same tenant owns: [`Scope::access`] in numbers.
    pub(crate) fn access(self, owner_no: i64) -> Access {
        match self.user_no {
            None => Access::Full,
            Some(user_no) if user_no == owner_no => Access::Full,
            Some(_) if owner_no == self.tenant_no => Access::Append,
            Some(_) => Access::None,
        }
    }
}

/// The name under which an owner is numbered.
pub(crate) fn name(owner: &Owner) -> &str {
    match owner {
        Owner::Tenant => "",
        Owner::User(user) => user.as_str(),
    }
}

/// Reads an owner's name back.
pub(crate) fn owner(user: String) -> Result<Owner> {
    Ok(if user.is_empty() { Owner::Tenant } else { Owner::User(UserId::new(user)?) })
}

/// The numbers of a scope, 0 for what is unknown.
pub(crate) fn of_scope(shared: &Shared, connection: &Connection, scope: &Scope) -> Result<ScopeNumbers> {
    let tenant = scope.tenant_id().as_str();
    let tenant_no = find(shared, connection, tenant, "")?;
    let user_no = match scope {
        Scope::Tenant(_) => None,
        Scope::User(_, user) => Some(find(shared, connection, tenant, user.as_str())?),
    };
    Ok(ScopeNumbers { tenant_no, user_no })
}

/// An owner's number, 0 where it has none yet.
pub(crate) fn find(shared: &Shared, connection: &Connection, tenant: &str, user: &str) -> Result<i64> {
    let known = shared.owners.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(no) = known.get(tenant).and_then(|users| users.get(user)) {
        return Ok(*no);
    }
    drop(known);
    let sql = "SELECT no FROM owners WHERE tenant = ?1 AND user = ?2";
    let no = connection.prepare_cached(sql)?.query_row([tenant, user], |row| row.get(0)).optional()?;
    // Inside a write the row may still be rolled back, so only a read may remember it.
    if let Some(no) = no
        && connection.is_autocommit()
    {
        let mut known = shared.owners.write().unwrap_or_else(PoisonError::into_inner);
        // Bounded: a file with very many users is asked again now and then.
        if known.values().map(HashMap::len).sum::<usize>() > 100_000 {
            known.clear();
        }
        known.entry(tenant.to_owned()).or_default().insert(user.to_owned(), no);
    }
    Ok(no.unwrap_or(0))
}

/// An owner's number, given now if need be. The tenant's own number is made before its users'.
pub(crate) fn number(shared: &Shared, connection: &Connection, tenant: &str, user: &str) -> Result<i64> {
    let no = find(shared, connection, tenant, user)?;
    if no != 0 {
        return Ok(no);
    }
    if !user.is_empty() {
        number(shared, connection, tenant, "")?;
    }
    connection.prepare_cached("INSERT INTO owners (tenant, user) VALUES (?1, ?2)")?.execute([tenant, user])?;
    Ok(connection.last_insert_rowid())
}

/// The owner that has a number.
pub(crate) fn by_number(connection: &Connection, owner_no: i64) -> Result<Owner> {
    let sql = "SELECT user FROM owners WHERE no = ?1";
    owner(connection.prepare_cached(sql)?.query_row([owner_no], |row| row.get(0))?)
}
