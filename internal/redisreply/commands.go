package redisreply

import "strings"

// reads has the commands that change nothing, so that they may be sent twice. Commands
// that are not in it count as writes.
var reads = setOf(`
	bitcount bitfield_ro bitpos dbsize dump echo eval_ro evalsha_ro exists expiretime fcall_ro
	geodist geohash geopos georadius_ro georadiusbymember_ro geosearch get getbit getrange
	hexists hget hgetall hkeys hlen hmget hpttl hrandfield hscan hstrlen httl hvals info
	keys lcs lindex llen lpos lrange memory mget object pexpiretime pfcount ping pttl
	randomkey scan scard sdiff sinter sintercard sismember smembers smismember sort_ro
	srandmember sscan strlen substr sunion time touch ttl type xinfo xlen xpending xrange
	xread xrevrange zcard zcount zdiff zinter zintercard zlexcount zmscore zrandmember
	zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore
	zrevrank zscan zscore zunion
`)

// waits has the commands that wait at the server until there is something to return.
var waits = setOf("blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin wait waitaof")

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// Reads reports whether the command of this lower-case name changes nothing.
func Reads(name string) bool { return reads[name] }

// Waits reports whether the command of this lower-case name may wait at the server until
// another client does something. arg returns argument i of n, the name being argument 0.
func Waits(name string, n int, arg func(i int) string) bool {
	if waits[name] {
		return true
	}
	if name != "xread" && name != "xreadgroup" {
		return false
	}
	for i := 1; i < n; i++ {
		switch word := arg(i); {
		case strings.EqualFold(word, "block"):
			return true
		case strings.EqualFold(word, "streams"): // names of keys follow
			return false
		}
	}
	return false
}
