package board

import "github.com/redis/go-redis/v9"

// The scripts. KEYS are the hash of reports by task, and under the empty name when it began, the hash of the leader (task, epoch,
// until), and the hash of the levels (version, levels). Times are microseconds of the
// server's clock; like epochs, they are below 2^53, and exact in Lua.
var (
	// ARGV: task, report, highest epoch that the task has seen, version that it has,
	// lease in microseconds, time to keep everything in milliseconds. A lease of more than a minute
	// was granted by a clock that was ahead, before a failover, and is over.
	syncScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local function text(x) return string.format('%.0f', x) end
local since = redis.call('HGET', KEYS[1], '')
if not since then
  since = text(now)
  redis.call('HSET', KEYS[1], '', since)
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%016.0f', now) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
local leader = redis.call('HMGET', KEYS[2], 'task', 'epoch', 'until')
local epoch, seen = tonumber(leader[2]) or 0, tonumber(ARGV[3])
local leads = leader[1] == ARGV[1]
local left = (tonumber(leader[3]) or 0) - now
if left < 0 or left > math.max(ARGV[5], 60000000) or epoch < seen then
  epoch, leads = math.max(epoch, seen) + 1, true
end
if leads then
  redis.call('HSET', KEYS[2], 'task', ARGV[1], 'epoch', text(epoch), 'until', text(now + ARGV[5]))
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
local levels = false
local version = redis.call('HGET', KEYS[3], 'version')
if version and version ~= ARGV[4] then levels = redis.call('HGET', KEYS[3], 'levels') end
return {text(now), text(epoch), leads and 1 or 0, levels, leads and redis.call('HGETALL', KEYS[1]), leads and ARGV[1] or leader[1] or '', since}
`)

	// ARGV: task, epoch, version, levels, time to keep them in milliseconds, and the tasks
	// to forget.
	publishScript = redis.NewScript(`
local leader = redis.call('HMGET', KEYS[2], 'task', 'epoch')
if leader[1] ~= ARGV[1] or leader[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[3], 'version', ARGV[3], 'levels', ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
for i = 6, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
return 1
`)

	// ARGV: task.
	leaveScript = redis.NewScript(`
redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('HGET', KEYS[2], 'task') == ARGV[1] then redis.call('HSET', KEYS[2], 'until', '0') end
return 1
`)
)
