//! The content of messages in the format of the OpenAI API: `content` is a string or an array of parts that have a `type`.

use std::borrow::Cow;

use serde::Deserialize;
use threadkeep::{ImageReference, JsonText, Part, ToolCall, ToolResult, Value};
use threadkeep_api::part::PartJson;
use utoipa::ToSchema;

use crate::error::ApiError;

/// The type of an item, which is always a message.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageTypeJson {
    Message,
}

/// Reads content: a string, or an array of parts. A part either has a `type` or is a part in the format of this API.
pub(super) fn read_content(content: &Value) -> Result<Vec<Part>, ApiError> {
    match content {
        Value::String(text) => Ok(vec![Part::Text(text.clone())]),
        Value::Array(parts) => parts.iter().enumerate().map(|(index, part)| read_part(index, part)).collect(),
        _ => Err(ApiError::invalid("content", "`content` must be a string or an array of parts")),
    }
}

fn read_part(index: usize, part: &Value) -> Result<Part, ApiError> {
    let param = format!("content[{index}]");
    let invalid = |what: &str| ApiError::invalid(param.clone(), format!("`{param}` {what}"));
    let text = |name: &str| part[name].as_str().map(str::to_owned);
    let required = |name: &str| text(name).ok_or_else(|| invalid(&format!("requires the string `{name}`")));
    let Some(kind) = part.get("type") else {
        let own = serde_json::from_value::<PartJson<'static>>(part.clone());
        return own.map(Into::into).map_err(|_| invalid("requires a `type`"));
    };
    Ok(match kind.as_str().unwrap_or_default() {
        "text" | "input_text" | "output_text" => Part::Text(required("text")?),
        "refusal" => Part::Text(required("refusal")?),
        "reasoning" => Part::Reasoning(required("text")?),
        "image_url" | "input_image" => {
            let image = &part["image_url"];
            let url = image.as_str().or_else(|| image["url"].as_str());
            let url = url.ok_or_else(|| invalid("requires an `image_url`"))?.to_owned();
            let detail = text("detail").or_else(|| image["detail"].as_str().map(str::to_owned));
            Part::Image(ImageReference { url, description: None, detail })
        }
        "tool_call" | "function_call" => {
            let id = text("call_id").or_else(|| text("id")).ok_or_else(|| invalid("requires a `call_id`"))?;
            let arguments: Cow<'_, str> = match &part["arguments"] {
                Value::String(arguments) => arguments.into(),
                Value::Object(_) => part["arguments"].to_string().into(),
                _ => return Err(invalid("requires `arguments`")),
            };
            let arguments = JsonText::new(arguments).map_err(|_| invalid("has `arguments` that are not JSON"))?;
            Part::ToolCall(ToolCall { id, name: required("name")?, arguments })
        }
        "tool_result" | "function_call_output" => {
            let is_error = part["is_error"] == true;
            Part::ToolResult(ToolResult { call_id: required("call_id")?, output: required("output")?, is_error })
        }
        _ => return Err(invalid("has an unknown `type`")),
    })
}
