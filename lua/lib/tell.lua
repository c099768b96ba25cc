-- lane_tell keeps the answer of a call that may have changed nothing. A script's
-- first write decides whether a full Redis refuses it: a SET would be, a DEL is not.
local function lane_tell(key, seq_text, answer)
  redis.call('DEL', key)
  lane_keep(key, seq_text, answer)
end
