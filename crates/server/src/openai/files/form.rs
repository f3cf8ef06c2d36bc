//! Reads uploads: forms of the type `multipart/form-data`.

use std::convert::Infallible;
use std::path::Path;

use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::Bytes;
use multer::{Constraints, Error, Field, Multipart, SizeLimit};
use sha2::{Digest, Sha256};
use threadkeep::memory::UPLOAD_BYTES;
use threadkeep_api::file::DEFAULT_PURPOSE;
use threadkeep_formats::DocumentFormat;
use threadkeep_service::hex;
use utoipa::ToSchema;

use super::{DEFAULT_LIBRARY, check_library};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::RawBody;

/// The names of the fields.
const FIELDS: [&str; 3] = ["file", "purpose", "library"];
/// The maximum size of a field that is not the file, in bytes.
const MAX_FIELD_BYTES: usize = 1_024;
/// The maximum length of a file name, in bytes.
const MAX_NAME_BYTES: usize = 500;
/// The purposes for which files can be uploaded. OpenAI's other purposes are for services that this server does not offer.
const PURPOSES: [&str; 2] = [DEFAULT_PURPOSE, "user_data"];

/// The form of an upload, as described in the OpenAPI document.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the form; `UploadForm` reads it")]
pub(crate) struct UploadFormJson {
    /// A text, Markdown or HTML file (`.txt`, `.md`, `.html`) of at most 16 MiB, in UTF-8.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// `assistants` (default) or `user_data`; both mean the same.
    purpose: Option<String>,
    /// The library to which the document is added. Default: `documents`.
    library: Option<String>,
}

/// The form of an upload.
#[derive(Debug)]
pub(crate) struct UploadForm {
    pub(super) filename: String,
    pub(super) format: DocumentFormat,
    pub(super) text: String,
    pub(super) purpose: String,
    pub(super) library: String,
    /// Identifies repetitions of the request. It is a digest of the fields rather than of the body, because each request has a
    /// different boundary between the fields.
    pub(super) digest: String,
}

impl FromRequest<App> for UploadForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let boundary = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary =
            boundary.and_then(|content_type| multer::parse_boundary(content_type).ok()).ok_or_else(|| {
                let message = "send the file as multipart/form-data, with a boundary";
                ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            })?;
        let RawBody(body) = RawBody::from_request(request, app).await?;
        read(body, boundary).await
    }
}

async fn read(body: Bytes, boundary: String) -> Result<UploadForm> {
    let limit = |bytes: usize| bytes as u64;
    let sizes = SizeLimit::new().per_field(limit(MAX_FIELD_BYTES)).for_field("file", limit(UPLOAD_BYTES));
    let constraints = Constraints::new().allowed_fields(FIELDS.to_vec()).size_limit(sizes);
    let body = futures::stream::once(async { Ok::<_, Infallible>(body) });
    let mut multipart = Multipart::with_constraints(body, boundary, constraints);
    let (mut file, mut purpose, mut library) = (None, None, None);
    while let Some(field) = multipart.next_field().await.map_err(form_error)? {
        match field.name() {
            Some("file") => set_once("file", &mut file, read_file(field).await?)?,
            Some("purpose") => set_once("purpose", &mut purpose, field.text().await.map_err(form_error)?)?,
            Some("library") => set_once("library", &mut library, field.text().await.map_err(form_error)?)?,
            _ => return Err(invalid_form("each field must be named `file`, `purpose` or `library`")),
        }
    }
    let (filename, format, text) = file.ok_or_else(|| ApiError::invalid("file", "missing field `file`"))?;
    let purpose = purpose.unwrap_or_else(|| DEFAULT_PURPOSE.to_owned());
    if !PURPOSES.contains(&purpose.as_str()) {
        let message = format!("Invalid 'purpose': expected one of {}.", PURPOSES.join(", "));
        return Err(ApiError::invalid("purpose", message).code("unsupported_purpose"));
    }
    let library = library.unwrap_or_else(|| DEFAULT_LIBRARY.to_owned());
    check_library(&library)?;
    let mut digest = Sha256::new();
    for part in [&filename, &purpose, &library, &text] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    Ok(UploadForm { filename, format, text, purpose, library, digest: hex(&digest.finalize()) })
}

fn set_once<T>(name: &str, field: &mut Option<T>, value: T) -> Result<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(ApiError::invalid(name, format!("duplicate field `{name}`; upload one file per request"))),
    }
}

/// Reads the file. Returns its name, format and text.
async fn read_file(field: Field<'_>) -> Result<(String, DocumentFormat, String)> {
    let name = field.file_name().unwrap_or_default().to_owned();
    if name.trim().is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        let message =
            format!("Invalid 'file': the file name must have 1 to {MAX_NAME_BYTES} bytes without control characters.");
        return Err(ApiError::invalid("file", message));
    }
    let media_type = field.content_type().map(|media_type| media_type.essence_str().to_ascii_lowercase());
    let format = DocumentFormat::from_path(Path::new(&name)).or(match media_type.as_deref() {
        Some("text/plain") => Some(DocumentFormat::Text),
        Some("text/markdown") => Some(DocumentFormat::Markdown),
        Some("text/html" | "application/xhtml+xml") => Some(DocumentFormat::Html),
        _ => None,
    });
    let format = format.ok_or_else(|| {
        unsupported_file("Invalid 'file': expected a text, Markdown or HTML file (.txt, .md, .markdown, .html, .htm).")
    })?;
    let bytes = field.bytes().await.map_err(form_error)?;
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| unsupported_file("Invalid 'file': the file is not UTF-8 text."))?;
    Ok((name, format, text.to_owned()))
}

pub(super) fn unsupported_file(message: impl Into<String>) -> ApiError {
    ApiError::invalid("file", message).code("unsupported_file")
}

fn form_error(error: Error) -> ApiError {
    match error {
        Error::UnknownField { field_name } => {
            let name = field_name.unwrap_or_default();
            ApiError::invalid(name.clone(), format!("unknown field `{name}`")).code("unknown_parameter")
        }
        Error::FieldSizeExceeded { limit, field_name } => {
            let name = field_name.unwrap_or_default();
            let message = format!("the field `{name}` exceeds {limit} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", message).param(name)
        }
        Error::IncompleteFieldData { .. } | Error::IncompleteStream | Error::IncompleteHeaders => {
            invalid_form("the form is incomplete")
        }
        other => invalid_form(&format!("invalid form: {other}")),
    }
}

fn invalid_form(message: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_form", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(parts: &[(&str, &str)]) -> Bytes {
        let parts =
            parts.iter().map(|(head, text)| format!("--B\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n"));
        Bytes::from(parts.collect::<String>() + "--B--\r\n")
    }

    async fn read_parts(parts: &[(&str, &str)]) -> Result<UploadForm> {
        read(body(parts), "B".to_owned()).await
    }

    const FILE: (&str, &str) = (r#"name="file"; filename="a.md""#, "# A");

    #[tokio::test]
    async fn forms_are_read() {
        let form = read_parts(&[(r#"name="library""#, "handbook"), FILE]).await.unwrap();
        assert_eq!((form.filename.as_str(), form.text.as_str(), form.library.as_str()), ("a.md", "# A", "handbook"));
        assert_eq!((form.purpose.as_str(), form.format), ("assistants", DocumentFormat::Markdown));
        let default = read_parts(&[FILE, (r#"name="purpose""#, "user_data")]).await.unwrap();
        assert_eq!((default.library.as_str(), default.purpose.as_str()), ("documents", "user_data"));
        assert_ne!(form.digest, default.digest);
        let typed = r#"name="file"; filename="notes""#.to_owned() + "\r\nContent-Type: text/html; charset=utf-8";
        assert_eq!(read_parts(&[(&typed, "<p>x")]).await.unwrap().format, DocumentFormat::Html);
    }

    #[tokio::test]
    async fn invalid_forms_are_rejected_with_code_and_parameter() {
        let large = "x".repeat(MAX_FIELD_BYTES + 1);
        for (parts, code, param) in [
            (vec![], "invalid_request", Some("file")),
            (vec![FILE, FILE], "invalid_request", Some("file")),
            (vec![FILE, (r#"name="other""#, "x")], "unknown_parameter", Some("other")),
            (vec![FILE, (r#"name="purpose""#, "batch")], "unsupported_purpose", Some("purpose")),
            (vec![FILE, (r#"name="purpose""#, &large)], "file_too_large", Some("purpose")),
            (vec![FILE, (r#"name="library""#, "a/b")], "invalid_request", Some("library")),
            (vec![(r#"name="file""#, "no name")], "invalid_request", Some("file")),
            (vec![(r#"name="file"; filename="a.pdf""#, "%PDF")], "unsupported_file", Some("file")),
            (vec![(r#"name="file"; filename="a.txt""#, "a\0b")], "unsupported_file", Some("file")),
        ] {
            let error = read_parts(&parts).await.unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), (code, param), "{parts:?}: {}", error.message);
        }
        for text in
            ["", "--B", "--B\r\n", "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.md\"\r\n\r\nx"]
        {
            let error = read(Bytes::from(text), "B".to_owned()).await.unwrap_err();
            assert!(error.status.is_client_error(), "{text:?}: {error:?}");
        }
    }
}
