local most, left = @MOST_STEPS@, 0

local function model_of(text)
  left = most
  local function behind_string(quote)
    local at = quote + 1
    while left > 0 do
      local found = string.find(text, '"', at, true)
      if found == nil then return nil end
      local before = found - 1
      while string.byte(text, before) == 92 do before = before - 1 end
      local slashes = found - 1 - before
      left = left - 1 - slashes / @SLASHES_OF_A_STEP@
      if slashes % 2 == 0 then return found + 1 end
      at = found + 1
    end
    return nil
  end
  local at, depth, quote = 1, 0, 0
  while true do
    if quote < at then
      quote = string.find(text, '"', at, true)
      if quote == nil then return nil end
      left = left - (quote - at) / @BYTES_OF_A_STEP@
    end
    left = left - 1
    if left <= 0 then return nil end
    local found = string.find(text, '["{}%[%]]', at)
    local char = string.sub(text, found, found)
    if char == '"' then
      at = behind_string(found)
      if at == nil then return nil end
      if depth == 1 and string.sub(text, found + 1, at - 2) == "model" then
        local value = string.match(text, '^%s*:%s*()"', at)
        if value ~= nil then
          local ends = behind_string(value)
          if ends == nil then return nil end
          return (string.gsub(string.sub(text, value + 1, ends - 2), "\\/", "/"))
        end
      end
    else
      if char == "{" or char == "[" then depth = depth + 1 else depth = depth - 1 end
      at = found + 1
    end
  end
end

local function model_object(id, at)
  return '{"id":"' .. id .. '","object":"model","created":' .. at .. ',"owned_by":"ultrascale"}'
end

local function answer(handle, status, text)
  handle:respond({[":status"] = status, ["content-type"] = "application/json"}, text)
end

local clients, known_clients = {}, 0

local function client_of(handle)
  if limits == nil then return nil end
  -- Tokens may have no sub.
  local name, now = handle:headers():get("@CLIENT_HEADER@") or "", handle:timestamp()
  local client = clients[name]
  if client == nil then
    if known_clients == @MOST_CLIENTS@ then clients, known_clients = {}, 0 end
    client = {steps = most, at = now, requests = 0, bytes = 0, under_way = {}}
    if setmetatable ~= nil then setmetatable(client.under_way, {__mode = "k"}) end
    clients[name], known_clients = client, known_clients + 1
  end
  client.steps = math.min(most, client.steps + (now - client.at) * @STEPS_OF_A_MS@)
  client.at = now
  return client
end

local function has_room(client, length)
  return client.requests < limits.requests and client.bytes + length <= limits.bytes
end

local function takes(handle, client)
  local length = tonumber(handle:headers():get("content-length"))
  if length == nil then
    length = handle:headers():get(":method") == "GET" and 0 or limits.body
  end
  if not has_room(client, length) then
    collectgarbage()
    client.requests, client.bytes = 0, 0
    for _, bytes in pairs(client.under_way) do
      client.requests, client.bytes = client.requests + 1, client.bytes + bytes
    end
  end
  if client.steps < @STEPS_LEFT@ or not has_room(client, length) then return false end
  client.under_way[coroutine.running() or "none"] = length
  client.requests, client.bytes = client.requests + 1, client.bytes + length
  return true
end

local kept, kept_until = nil, 0

local function models(handle)
  local now = handle:timestamp()
  if kept ~= nil and now < kept_until then return kept end
  local headers, told = handle:httpCall(
    "@ADMIN_CLUSTER@",
    {[":method"] = "GET", [":path"] = "@SERVICES@", [":authority"] = "localhost"},
    nil, @PATIENCE_MS@)
  if headers[":status"] ~= "200" or told == nil then return nil end
  local found = {ids = {}, known = {}}
  for ids in string.gmatch(told, '"@MODELS_METADATA@": *"([^"]*)"') do
    for id in string.gmatch(ids, "[%w%._/:@+-]+") do
      if not found.known[id] then
        found.known[id] = true
        table.insert(found.ids, id)
      end
    end
  end
  table.sort(found.ids)
  kept, kept_until = found, now + @KEPT_MS@
  return found
end

local function tell_models(handle, wanted)
  local found = models(handle)
  local now = string.format("%d", math.floor(handle:timestamp() / 1000))
  if found == nil then
    answer(handle, "502", '@UNKNOWN@')
  elseif wanted == nil then
    local list = {}
    for number, id in ipairs(found.ids) do list[number] = model_object(id, now) end
    answer(handle, "200", '{"object":"list","data":[' .. table.concat(list, ",") .. "]}")
  elseif found.known[wanted] then
    answer(handle, "200", model_object(wanted, now))
  else
    answer(handle, "404", '@UNKNOWN_MODEL@')
  end
end

function envoy_on_request(handle)
  local path = string.match(handle:headers():get(":path"), "^[^?]*")
  if handle:headers():get(":method") == "GET" then
    if path == "/v1/models" or path == "/v1/models/" then return tell_models(handle, nil) end
    local wanted = string.match(path, "^/v1/models/(.+)$")
    if wanted ~= nil then
      wanted = string.gsub(wanted, "%%(%x%x)", function(code)
        return string.char(tonumber(code, 16))
      end)
      return tell_models(handle, wanted)
    end
  end
  local client = client_of(handle)
  if client ~= nil and not takes(handle, client) then return answer(handle, "429", "") end
  local body = handle:body()
  -- Others of the same client may have been read meanwhile.
  client = client_of(handle)
  if client ~= nil and client.steps < @STEPS_LEFT@ then return answer(handle, "429", "") end
  if body ~= nil then
    local model = model_of(body:getBytes(0, body:length()))
    if client ~= nil then client.steps = client.steps - most + left end
    if body:length() > @LARGE_BODY@ then collectgarbage() end
    if left <= 0 then return answer(handle, "400", '@TOO_DEEP@') end
    if model ~= nil and string.find(model, "^[%w%._/:@+-]+$") then
      handle:headers():replace("@MODEL_HEADER@", model)
    end
  end
  local model = handle:headers():get("@MODEL_HEADER@")
  if models_of_clients == nil or model == nil then return end
  local own = models_of_clients[handle:headers():get("@CLIENT_HEADER@") or ""]
  if own == nil or not own[model] then answer(handle, "403", "") end
end
