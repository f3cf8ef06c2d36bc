import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "node_modules", "pictures", "public", "src/api/schema.d.ts"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] }, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      // Content from conversations is never parsed as HTML.
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Render nodes instead." },
        { property: "outerHTML", message: "Render nodes instead." },
        { property: "insertAdjacentHTML", message: "Render nodes instead." },
      ],
      "no-restricted-syntax": ["error", { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Render nodes instead." }],
    },
  },
  // The compiler checks the names in these files.
  { files: ["eslint.config.js", "**/*.mjs"], ...tseslint.configs.disableTypeChecked },
  { files: ["**/*.mjs"], rules: { "no-undef": "off" } },
);
