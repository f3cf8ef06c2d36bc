//! The to-do list of a plan.

use serde::{Deserialize, Serialize};

/// One thing to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What.
    pub what: String,
    /// The tools that may be called for it.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Where it stands.
    #[serde(default)]
    pub state: StepState,
    /// How often it failed.
    #[serde(default)]
    pub failures: u32,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// To be done.
    #[default]
    Open,
    /// Done.
    Done,
    /// Given up.
    Failed,
}

impl Step {
    /// Fails once more, and for good after so many retries.
    pub(super) fn fail(&mut self, trouble: &str, retries: u32) {
        self.failures += 1;
        self.trouble = Some(trouble.chars().take(500).collect());
        if self.failures > retries {
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

/// Reads the JSON object in a model's words: models like to put some around it.
pub(super) fn read_plan(text: &str) -> Option<Plan> {
    let object = text.get(text.find('{')?..=text.rfind('}')?)?;
    let mut plan: Plan = serde_json::from_str(object).ok()?;
    for step in &mut plan.steps {
        // Only what is to be done is the planner's to say.
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
    fn a_plan_is_found_among_words() {
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
    fn a_step_is_given_up_after_its_retries() {
        let mut step = Step::default();
        for expected in [StepState::Open, StepState::Open, StepState::Failed] {
            step.fail("no", 2);
            assert_eq!(step.state, expected);
        }
    }
}
