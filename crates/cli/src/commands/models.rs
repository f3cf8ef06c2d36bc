use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use threadkeep::core::redact_address;
use threadkeep::models::{
    AvailableModel, Ping, Price, PriceTable, ProviderModel, Selected, SelectionError, find_models, select,
    select_embedder,
};

use super::{App, Status};
use crate::failure::Failure;
use crate::models;
use crate::progress;
use crate::table::{Align, Table};

/// List the configured language models, and whether they respond
///
/// Models are configured by the variables that docs/models.md lists. Checking whether they respond costs no tokens. Keys are
/// never printed. Exits with 1 if the selected model does not respond.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep models
  threadkeep models --model ollama:qwen3     check this model
  threadkeep models --no-ping                do not contact the providers")]
pub(crate) struct Arguments {
    /// The model to select: offline, PROVIDER, PROVIDER:MODEL, or a model of the first configured provider
    #[arg(long, value_name = "NAME", env = "THREADKEEP_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Do not contact the providers
    #[arg(long)]
    no_ping: bool,
    /// A JSON file with prices in addition to the built-in ones, as described in docs/models.md
    #[arg(long, value_name = "FILE", env = "THREADKEEP_PRICES", hide_env_values = true)]
    prices: Option<PathBuf>,
}

/// The origin of a value that no variable sets.
const BUILT_IN: &str = "built in";

/// The JSON output.
#[derive(Serialize)]
struct ModelsJson {
    /// The selected model, as `PROVIDER:MODEL` or `offline`. Null if the model cannot be used.
    selected: Option<String>,
    models: Vec<Row>,
    /// The embedding model, if one is configured.
    embedder: Option<String>,
}

#[derive(Serialize)]
struct Row {
    provider: String,
    model: Option<String>,
    model_from: Option<String>,
    address: Option<String>,
    address_from: Option<String>,
    /// The variable that contains the key.
    key: Option<&'static str>,
    price: Option<Price>,
    /// `ready`, `answers`, `unknown_model`, `unauthorized`, `unreachable`, `unusable`, or `not_asked`.
    status: &'static str,
    detail: Option<String>,
    #[serde(skip)]
    is_selected: bool,
}

impl Row {
    /// Returns the name that selects the model.
    fn name(&self) -> String {
        match &self.model {
            Some(model) if self.address.is_some() => format!("{}:{model}", self.provider),
            _ => self.provider.clone(),
        }
    }

    /// Returns the variables that configure the model.
    fn set_by(&self) -> String {
        let origins = [self.key, self.model_from.as_deref(), self.address_from.as_deref()];
        let origins: Vec<&str> = origins.into_iter().flatten().filter(|origin| *origin != BUILT_IN).collect();
        origins.join(", ")
    }
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let environment = models::environment(arguments.model.as_deref(), &app.settings);
    let prices = models::prices(arguments.prices.as_deref(), &app.settings)?;
    let selected = match select(arguments.model.as_deref(), &environment) {
        // An invalid model in the environment is not fatal: it is listed with its error.
        Err(error) if arguments.model.is_none() => Err(error),
        selected => Ok(selected.map_err(selection_failure)?),
    };
    let embedder = select_embedder(None, &environment).map_err(selection_failure)?;
    let found = listed(find_models(&environment), selected.as_ref().ok());
    let spinner = progress::spinner("contacting the providers…");
    let mut rows = Vec::new();
    for found in &found {
        let is_selected = matches!((found, &selected), (Ok(found), Ok(Selected::Provider(one))) if **one == *found);
        rows.push(row(found, is_selected, &prices, !arguments.no_ping).await);
    }
    spinner.finish_and_clear();
    rows.push(offline(matches!(selected, Ok(Selected::Offline))));
    let selected_row = rows.iter().find(|row| row.is_selected);
    let responds = selected_row.is_some_and(|row| matches!(row.status, "ready" | "answers" | "not_asked"));
    if app.output.is_json() {
        let selected = selected_row.map(Row::name);
        app.output.json(&ModelsJson { selected, models: rows, embedder: embedder.map(|embedder| embedder.model) })?;
    } else {
        print(app, &rows)?;
        if let Some(embedder) = embedder {
            app.output.line(format_args!(
                "\nembeddings by {} at {}",
                embedder.model,
                redact_address(&embedder.base_url)
            ))?;
        }
    }
    Ok(if responds { Status::Done } else { Status::Findings })
}

/// Returns the configured models, starting with the selected one, which may differ from the model that its provider's
/// variables specify.
fn listed(
    mut found: Vec<Result<AvailableModel, SelectionError>>,
    selected: Option<&Selected>,
) -> Vec<Result<AvailableModel, SelectionError>> {
    if let Some(Selected::Provider(selected)) = selected {
        found.retain(|other| !matches!(other, Ok(other) if *other == **selected));
        found.insert(0, Ok((**selected).clone()));
    }
    found
}

fn print(app: &App, rows: &[Row]) -> Result<()> {
    app.output.line(table(rows))?;
    for row in rows {
        if let Some(detail) = &row.detail {
            app.output.note(format_args!("{}: {detail}", row.provider));
        }
    }
    if rows.len() == 1 {
        app.output.note("hint: docs/models.md lists the variables that configure a language model");
    }
    Ok(())
}

pub(super) fn selection_failure(error: SelectionError) -> Failure {
    Failure::user_error(error.to_string()).hint("docs/models.md lists the variables, providers and model names")
}

async fn row(
    found: &Result<AvailableModel, SelectionError>,
    is_selected: bool,
    prices: &PriceTable,
    can_ping: bool,
) -> Row {
    let found = match found {
        Ok(found) => found,
        Err(error) => return unusable(error),
    };
    let (status, detail) = if can_ping { ping(found).await } else { ("not_asked", None) };
    Row {
        provider: found.provider.to_string(),
        model: Some(found.model.clone()),
        model_from: Some(found.model_origin.to_string()),
        address: Some(redact_address(&found.base_url)),
        address_from: Some(found.base_url_origin.to_string()),
        key: found.key_variable,
        price: prices.find(found.provider.as_str(), &found.model).copied(),
        status,
        detail,
        is_selected,
    }
}

async fn ping(found: &AvailableModel) -> (&'static str, Option<String>) {
    let model = match ProviderModel::new(found.config(PriceTable::default())) {
        Ok(model) => model,
        Err(error) => return ("unusable", Some(error.to_string())),
    };
    match model.ping().await {
        Ping::Ready => ("ready", None),
        Ping::UnknownModel { known } => {
            ("unknown_model", Some(format!("{} is not among its models: {}", found.model, known.join(", "))))
        }
        Ping::Unauthorized(detail) => ("unauthorized", Some(detail)),
        Ping::Unreachable(detail) => ("unreachable", Some(detail)),
        _ => ("answers", None),
    }
}

fn unusable(error: &SelectionError) -> Row {
    let (provider, detail) = match error {
        SelectionError::Missing { provider, variable } => (provider.to_string(), format!("needs {variable}")),
        other => ("environment".to_owned(), other.to_string()),
    };
    Row {
        provider,
        model: None,
        model_from: None,
        address: None,
        address_from: None,
        key: None,
        price: None,
        status: "unusable",
        detail: Some(detail),
        is_selected: false,
    }
}

fn offline(is_selected: bool) -> Row {
    Row {
        provider: "offline".to_owned(),
        model: Some("offline".to_owned()),
        model_from: Some(BUILT_IN.to_owned()),
        address: None,
        address_from: None,
        key: None,
        price: None,
        status: "ready",
        detail: None,
        is_selected,
    }
}

fn table(rows: &[Row]) -> String {
    let columns = ["", "model", "status", "$/M in, out", "address", "set by"];
    let mut table = Table::new(columns.map(|name| (name, Align::Left)));
    for row in rows {
        table.add_row([
            if row.is_selected { "*" } else { "" }.to_owned(),
            row.name(),
            row.status.replace('_', " "),
            row.price.map(|price| format!("{}, {}", price.input, price.output)).unwrap_or_default(),
            row.address.clone().unwrap_or_default(),
            row.set_by(),
        ]);
    }
    table.text()
}
