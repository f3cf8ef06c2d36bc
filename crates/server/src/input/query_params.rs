use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use threadkeep::core::limits;
use threadkeep::{Map, MetadataFilter, Role, Value};

use crate::error::ApiError;

/// The query parameters of a request. Actions take the parameters that they know; [`QueryParams::finish`] rejects the rest. Lists
/// are sent as `a=1&a=2` or `a[]=1&a[]=2`.
#[derive(Debug)]
pub(crate) struct QueryParams(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for QueryParams {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query().unwrap_or_default()))
    }
}

impl QueryParams {
    pub(crate) fn read(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Takes all values of a parameter.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let is_named = |param: &str| param == name || param.strip_suffix("[]") == Some(name);
        self.0.extract_if(.., |(param, _)| is_named(param)).map(|(_, value)| value).collect()
    }

    /// Takes the only value of a parameter.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let mut values = self.take_all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(ApiError::invalid(name, format!("duplicate parameter `{name}`"))),
        }
    }

    /// Takes the only value of a parameter and parses it. `expected` is the type that the error names, such as `a whole number`.
    pub(crate) fn parse<T: FromStr>(&mut self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ApiError::invalid(name, format!("`{name}` must be {expected}")))
    }

    /// Takes `limit`, the number of entries on a page: at least 1 and at most the maximum page size of stores.
    pub(crate) fn take_limit(&mut self, default: usize) -> Result<usize, ApiError> {
        let limit = self.parse("limit", "a whole number")?.unwrap_or(default);
        limits::check_page(limit).map_err(|error| ApiError::from(error).param("limit"))?;
        Ok(limit)
    }

    /// Takes the parameters of the form `metadata[key]=value`. The value matches a string, and an integer or boolean with this text.
    pub(crate) fn take_metadata(&mut self) -> Result<MetadataFilter, ApiError> {
        const FORM: &str = "a metadata filter must have the form `metadata[key]=value`";
        let params = self.0.extract_if(.., |(param, _)| param == "metadata" || param.starts_with("metadata["));
        let mut filter = MetadataFilter::default();
        for (param, value) in params.collect::<Vec<_>>() {
            let key = param.strip_prefix("metadata[").and_then(|rest| rest.strip_suffix(']'));
            let key = key.filter(|key| !key.is_empty()).ok_or_else(|| ApiError::invalid(&param, FORM))?;
            filter = filter.with_text(key, &value);
        }
        filter.check().map_err(|error| ApiError::from(error).param("metadata"))?;
        Ok(filter)
    }

    /// Takes all values of `role`.
    pub(crate) fn take_roles(&mut self) -> Result<Vec<Role>, ApiError> {
        let roles = self.take_all("role").into_iter().map(|role| role.parse());
        roles
            .collect::<Result<_, _>>()
            .map_err(|_| ApiError::invalid("role", "`role` must be one of system, user, assistant, tool"))
    }

    /// Whether a parameter is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(param, _)| param == name)
    }

    /// Returns the remaining parameters as a map of strings.
    pub(crate) fn into_texts(mut self) -> Result<Map, ApiError> {
        let mut texts = Map::new();
        while let Some((name, _)) = self.0.first().cloned() {
            let value = self.take(&name)?.unwrap_or_default();
            texts.insert(name, Value::String(value));
        }
        Ok(texts)
    }

    /// Rejects any remaining parameter, so that a misspelt parameter is not ignored.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::invalid(name, "unknown parameter").code("unknown_parameter")),
        }
    }
}
