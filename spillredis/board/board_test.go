package board

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/quota/fleet/boardtest"
)

func mustBoard(t *testing.T, c redis.Scripter, domain string) *Board {
	t.Helper()
	b, err := New(c, Config{Domain: domain})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestContract(t *testing.T) {
	c := newServer(t).client(redis.UniversalOptions{})
	domains := 0
	boardtest.Run(t, boardtest.Kit{
		New: func(t *testing.T) fleet.Board {
			domains++
			return mustBoard(t, c, fmt.Sprint("contract-", domains))
		},
		Wait: func(d time.Duration) { <-time.After(d) },
		Lose: func(fleet.Board) {
			if err := c.FlushAll(context.Background()).Err(); err != nil {
				t.Error(err)
			}
		},
	})
}

// A server that lacks memory evicts a key. That the reports are missing says that they were lost, and not that
// their tasks have left.
func TestReportsAreEvicted(t *testing.T) {
	c := newServer(t).client(redis.UniversalOptions{})
	b := mustBoard(t, c, "evicted")
	sync := func(task string) fleet.Heard {
		h, err := b.Sync(t.Context(), fleet.Said{Task: task, Report: []byte(task), Lease: time.Minute, Keep: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	sync("a")
	sync("b")
	before := sync("a")
	if err := b.Leave(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	left := sync("a")
	if len(before.Reports) != 2 || len(left.Reports) != 1 || before.Since <= 0 || left.Since != before.Since || before.Reports[0].At < before.Since {
		t.Errorf("before b leaves %+v, and after that %+v", before, left)
	}
	if err := c.Del(t.Context(), b.keys[0]).Err(); err != nil {
		t.Fatal(err)
	}
	if h := sync("a"); len(h.Reports) != 1 || h.Since <= left.Now || h.Since > h.Now {
		t.Errorf("after the loss %+v, and before it was %v", h, left.Now)
	}
}

// A server that lost its scripts gets them again.
func TestScriptsAreLoadedAgain(t *testing.T) {
	c := newServer(t).client(redis.UniversalOptions{})
	b := mustBoard(t, c, "scripts")
	for range 2 {
		if _, err := b.Sync(t.Context(), fleet.Said{Task: "a", Lease: time.Second, Keep: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// A replica whose clock is behind takes over, and finds a lease by the clock of the server before: it is over.
func TestLeaseByAnotherClock(t *testing.T) {
	c := newServer(t).client(redis.UniversalOptions{})
	b := mustBoard(t, c, "clock")
	first, err := b.Sync(t.Context(), fleet.Said{Task: "a", Lease: time.Second, Keep: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		left  time.Duration
		leads bool
	}{{30 * time.Second, false}, {time.Hour, true}} {
		until := (first.Now + row.left).Microseconds()
		if err := c.HSet(t.Context(), b.keys[1], "until", until).Err(); err != nil {
			t.Fatal(err)
		}
		h, err := b.Sync(t.Context(), fleet.Said{Task: "b", Lease: time.Second, Keep: time.Minute})
		if err != nil || h.Leader != row.leads || (h.Epoch > first.Epoch) != row.leads {
			t.Errorf("with %v left of the lease: %+v, %v; want to lead %v", row.left, h, err, row.leads)
		}
	}
}

// The rights in the package comment are enough, and the keys of a domain expire.
func TestUserOfAnACL(t *testing.T) {
	s := newServer(t)
	admin := s.client(redis.UniversalOptions{})
	rights := "on >secret ~spillway:* +evalsha +eval +time +hset +hget +hmget +hgetall +hdel +pexpire"
	args := []any{"ACL", "SETUSER", "quota"}
	for r := range strings.FieldsSeq(rights) {
		args = append(args, r)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	b := mustBoard(t, s.client(redis.UniversalOptions{Username: "quota", Password: "secret"}), "acl")
	h, err := b.Sync(t.Context(), fleet.Said{Task: "a", Report: []byte("x"), Lease: time.Second, Keep: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	v := fleet.Version{Epoch: h.Epoch, Seq: 1}
	if err := b.Publish(t.Context(), fleet.Publication{Task: "a", Version: v, Levels: []byte("l"), Keep: time.Minute, Forget: []string{"z"}}); err != nil {
		t.Fatal(err)
	}
	for _, key := range b.keys {
		if ttl := admin.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s expires in %v, want at most a minute", key, ttl)
		}
	}
	if err := b.Leave(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
}

func TestDomainOutOfRange(t *testing.T) {
	for _, domain := range []string{"", "a{b", "}", strings.Repeat("x", 201)} {
		_, err := New(nil, Config{Domain: domain})
		if e, ok := errors.AsType[*spillway.FieldError](err); !ok || e.Path != "Domain" {
			t.Errorf("%q: %v, want an error that names Domain", domain, err)
		}
	}
}

// Connect does not change what is set, and bounds what is not.
func TestConnect(t *testing.T) {
	c := Connect(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: time.Minute}).(*redis.Client)
	defer c.Close()
	o := c.Options()
	if o.PoolSize != 2 || o.ReadTimeout != time.Minute || o.DialTimeout != time.Second || o.MaxRetries != 0 || !o.ContextTimeoutEnabled {
		t.Errorf("options %+v", o)
	}
	if _, err := mustBoard(t, c, "x").Sync(t.Context(), fleet.Said{Task: "a"}); err == nil {
		t.Error("no error from a server that is not there")
	}
}

func TestRepliesThatAreNone(t *testing.T) {
	for _, reply := range [][]any{
		nil, {"1", "1"}, {1, "1", int64(1)}, {"x", "1", int64(1)}, {"-1", "1", int64(1)}, {"1", "x", int64(1)},
		{"1", "1", "1"}, {"1", "1", int64(1), 5}, {"1", "1", int64(1), nil, "x"}, {"1", "1", int64(1), nil, nil, "a", "7", "x"},
		{"1", "1", int64(1), nil, []any{"a"}},
		{"99999999999999999", "1", int64(1)},
	} {
		if h, err := parse(reply); err == nil {
			t.Errorf("%v: read %+v", reply, h)
		}
	}
	if h, err := parse([]any{"7", "3", int64(0), nil, nil, "b"}); err != nil || h.Task != "b" || h.Leader {
		t.Errorf("read %+v, %v", h, err)
	}
	stored := []any{"", "0000000000000003", "a", "0000000000000005r", "short", "5", "none", "xxxxxxxxxxxxxxxxr", 5, nil}
	h, err := parse([]any{"7", "3", int64(1), "levels", stored, nil, "3"})
	want := fleet.Heard{
		Now: 7000, Since: 3000, Epoch: 3, Leader: true, Levels: []byte("levels"),
		Reports: []fleet.Stamped{{Task: "a", At: 5000, Report: []byte("r")}},
	}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("read %+v, %v; want %+v", h, err, want)
	}
}
