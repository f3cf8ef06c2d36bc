# A server over standard input and output for tests. The first argument selects how it misbehaves.
mode=$1
tools='{"name":"echo","description":"Returns its arguments.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}'
for name in env never die big flood fail change; do
  tools="$tools,{\"name\":\"$name\",\"inputSchema\":{\"type\":\"object\"}}"
done
case $mode in
  silent) exec sleep 60 ;;
  exits) echo 'cannot find the data' >&2; exit 3 ;;
  noise) exec cat /dev/zero ;;
  forks) sleep 987654 & ;;
  many)
    tools=$(awk 'BEGIN { for (n = 0; n < 10000; n++) printf "%s{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}", n ? "," : "", n }') ;;
  odd)
    tools='{"name":"read/file","inputSchema":{"type":"object"}},{"name":"read file","inputSchema":{"type":"object"}},{"name":"recall","inputSchema":{"type":"object"}},{"name":"recall","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}}' ;;
esac
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer "{\"tools\":[$tools]}" ;;
    *'"method":"tools/call"'*)
      [ -n "$2" ] && echo call >> "$2"
      case $line in
        *'"name":"echo"'*) text "$(printf '%s' "$line" | sed 's/.*"arguments"://; s/"/\\"/g')" ;;
        *'"name":"env"'*) text "$(env | grep -v '^_=' | sed 's/=.*//' | sort | tr '\n' ' ')" ;;
        *'"name":"die"'*) echo 'out of paper' >&2; exit 3 ;;
        *'"name":"big"'*) head -c 100000000 /dev/zero | tr '\0' x; echo ;;
        *'"name":"flood"'*) exec yes "$(printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%10000s"}}' x)" ;;
        *'"name":"fail"'*) answer '{"content":[{"type":"text","text":"no such file"}],"isError":true}' ;;
        *'"name":"change"'*)
          tools='{"name":"later","inputSchema":{"type":"object"}}'
          printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
          text changed ;;
      esac ;;
  esac
done
