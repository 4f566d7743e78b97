"""The script by which proxies read the model of a request from its body.

Routes choose by headers, and OpenAI-style requests name their model in JSON. The script runs in
each proxy before the route is chosen anew; it walks from one structural character to the next, so
that megabytes of a prompt cost milliseconds, and takes the key of the outermost object alone.

Sources:
    https://www.envoyproxy.io/docs/envoy/v1.39.1/configuration/http/http_filters/lua_filter
    https://www.rfc-editor.org/rfc/rfc8259
    https://platform.openai.com/docs/api-reference/chat/create#chat-create-model
"""

from ultrascale.plan.names import MODEL_HEADER

MODEL_SCRIPT = f"""\
local function behind_string(text, quote)
  local at = quote + 1
  while true do
    local found = string.find(text, '["\\\\]', at)
    if found == nil then return nil end
    if string.byte(text, found) == 34 then return found + 1 end
    at = found + 2
  end
end

local function model_of(text)
  local at, depth = 1, 0
  while true do
    local found = string.find(text, '["{{}}%[%]]', at)
    if found == nil then return nil end
    local char = string.sub(text, found, found)
    if char == '"' then
      at = behind_string(text, found)
      if at == nil then return nil end
      if depth == 1 and string.sub(text, found + 1, at - 2) == "model" then
        local value = string.match(text, '^%s*:%s*()"', at)
        if value ~= nil then
          local ends = behind_string(text, value)
          if ends == nil then return nil end
          return (string.gsub(string.sub(text, value + 1, ends - 2), "\\\\/", "/"))
        end
      end
    else
      if char == "{{" or char == "[" then depth = depth + 1 else depth = depth - 1 end
      at = found + 1
    end
  end
end

function envoy_on_request(handle)
  local body = handle:body()
  if body == nil then return end
  local model = model_of(body:getBytes(0, body:length()))
  if model ~= nil and string.find(model, "^[%w%._/:@+-]+$") then
    handle:headers():replace("{MODEL_HEADER}", model)
  end
end
"""
"""The script, in Lua 5.1.

A request whose body names no model keeps the header that it came with. Two keys `model` of one
object count as the first, where most servers take the last: they then answer that they have no
such model.
"""
