/// Instructions about memory for every assistant.
pub const MEMORY_INSTRUCTIONS: &str = "You remember this conversation. Words such as \"it\", \"that\" or \"the \
                                       deployment\", and requests such as \"delete it\", \"can you delete that\" or \
                                       \"scale it down\", refer to what was said before: look for it there and act on it. \
                                       NEVER ask which one is meant when the answer is clearly in the conversation \
                                       history. If it is not clear, because there are several candidates or none, \
                                       ask, and do nothing until the user answers.";
