//! The steps of a plan.

use serde::{Deserialize, Serialize};

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What to find out.
    pub what: String,
    /// The names of the tools that may be called for the step.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The step's state.
    #[serde(default)]
    pub state: StepState,
    /// How many attempts failed.
    #[serde(default)]
    pub failures: u32,
    /// The error of the last failed attempt.
    #[serde(rename = "trouble", default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not done yet.
    #[default]
    Open,
    /// Done.
    Done,
    /// Failed, with no retries left.
    Failed,
}

impl Step {
    /// Records a failed attempt. After `max_retries` retries the step has failed.
    pub(super) fn fail(&mut self, error: &str, max_retries: u32) {
        self.failures += 1;
        self.last_error = Some(error.chars().take(500).collect());
        if self.failures > max_retries {
            self.state = StepState::Failed;
        }
    }
}

/// A plan as a model writes it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Plan {
    #[serde(default)]
    pub(super) intent: String,
    #[serde(default)]
    pub(super) steps: Vec<Step>,
}

/// Parses the JSON object in a model's answer. Models often write text around the object.
pub(super) fn read_plan(text: &str) -> Option<Plan> {
    let object = text.get(text.find('{')?..=text.rfind('}')?)?;
    let mut plan: Plan = serde_json::from_str(object).ok()?;
    for step in &mut plan.steps {
        // The model decides only what to do. State and failures start at their defaults, whatever the model wrote.
        *step =
            Step { what: std::mem::take(&mut step.what), tools: std::mem::take(&mut step.tools), ..Step::default() };
    }
    plan.steps.retain(|step| !step.tools.is_empty());
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_surrounding_text() {
        let text = "Here it is:\n```json\n{\"intent\": \"leave\", \"steps\": [{\"what\": \"days\", \"tools\": [\"docs\"], \
                    \"state\": \"done\"}, {\"what\": \"think\"}]}\n```";
        let plan = read_plan(text).unwrap();
        assert_eq!((plan.intent.as_str(), plan.steps.len()), ("leave", 1));
        assert_eq!(plan.steps[0].state, StepState::Open);
        for text in ["", "no plan", "} {", "{\"steps\": 3}"] {
            assert!(read_plan(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_step_fails_after_its_retries() {
        let mut step = Step::default();
        for expected in [StepState::Open, StepState::Open, StepState::Failed] {
            step.fail("no", 2);
            assert_eq!(step.state, expected);
        }
    }
}
