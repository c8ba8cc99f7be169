package board

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// says returns options of a client whose server says something to the first command after the greeting,
// and closes the connection. A slow machine has time to read long answers.
func says(answer string) redis.UniversalOptions {
	return redis.UniversalOptions{
		Addrs: []string{"127.0.0.1:1"}, Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				b := make([]byte, 4096)
				for _, text := range []string{"-ERR unknown command 'HELLO'\r\n", answer} {
					if _, err := theirs.Read(b); err != nil {
						return
					}
					if text == answer {
						go func() { _, _ = io.Copy(io.Discard, theirs) }()
					}
					_, _ = io.WriteString(theirs, text)
				}
			}()
			return ours, nil
		},
	}
}

// heard syncs a new task with a server that says something.
func heard(t *testing.T, answer string) (*fleet.Fleet, error) {
	t.Helper()
	c := Connect(says(answer))
	defer c.Close()
	f, err := fleet.New(fleet.Config{
		Tasks: 20, MaxUnlisted: 3,
		Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 1000}}, DefaultLimit: quota.Limit{Rate: 200}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return f, f.Sync(ctx, t0, mustBoard(t, c, "heard"))
}

var t0 = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// An answer that would make the client allocate without bound is an error.
func TestAnswersBeyondTheBounds(t *testing.T) {
	good := "*3\r\n$1\r\n7\r\n$1\r\n3\r\n:0\r\n"
	if f, err := heard(t, good); err != nil || f.Stats(t0).ErrorsTotal != 0 {
		t.Fatalf("a good answer: %v", err)
	}
	for name, answer := range map[string]string{
		"array":               "*9223372036854775807\r\n",
		"array of a gigabyte": "*70000000\r\n",
		"text":                "$9223372036854775807\r\n",
		"text in an array":    "*3\r\n$1\r\n7\r\n$1000000000\r\n",
		"map":                 "%4611686018427387904\r\n",
		"negative":            "*-2\r\n",
		"nested":              strings.Repeat("*1\r\n", 1e6),
		"nested attributes":   strings.Repeat("|1\r\n", 1e6),
		"line":                "-ERR " + strings.Repeat("x", 1<<20),
		"no number":           "*x\r\n",
		"empty":               "\r\n",
		"not Redis":           "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		_, err := heard(t, answer)
		if err == nil || name != "not Redis" && !errors.Is(err, errAnswer) {
			t.Errorf("%s: %v, want %v", name, err, errAnswer)
		}
	}
}

// Elements count together, whichever array they are in. No client reads this answer: that takes
// longer than its timeout on a slow machine.
func TestManyElements(t *testing.T) {
	var c bounded
	half := "*3000000\r\n" + strings.Repeat("$-1\r\n", 3000000)
	if !c.follow([]byte("*2\r\n" + half)) {
		t.Error("half of the answer is beyond the bounds")
	}
	if c.follow([]byte(half)) {
		t.Error("all of the answer is within the bounds")
	}
}

// What Redis says is followed to its end, wherever reads cut it.
func TestAnswersAreFollowed(t *testing.T) {
	answers := []string{
		"+OK\r\n", "-ERR x\r\n", ":5\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "$0\r\n\r\n", "$5\r\na\r\n:1\r\n",
		"*2\r\n*2\r\n:1\r\n$3\r\nabc\r\n*1\r\n*0\r\n", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n", "%0\r\n", ">2\r\n+a\r\n+b\r\n", "~1\r\n#t\r\n",
		"|1\r\n+a\r\n+b\r\n:1\r\n", "|0\r\n:1\r\n", "*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:1\r\n:2\r\n", "=7\r\ntxt:abc\r\n", "!5\r\nERR x\r\n",
	}
	for _, answer := range answers {
		for cut := 1; cut <= len(answer); cut++ {
			var c bounded
			for rest := answer; rest != ""; rest = rest[min(cut, len(rest)):] {
				if c.text == 0 && len(c.line) == 0 && len(c.open) == 0 && rest != answer && !strings.HasPrefix(answer, "|") {
					t.Errorf("%q in pieces of %d: has ended before %q", answer, cut, rest)
				}
				if !c.follow([]byte(rest[:min(cut, len(rest))])) {
					t.Errorf("%q in pieces of %d: beyond the bounds", answer, cut)
				}
			}
			if c.text != 0 || len(c.line) != 0 || len(c.open) != 0 {
				t.Errorf("%q in pieces of %d: has not ended: %+v", answer, cut, c)
			}
		}
	}
}

// Whatever the server of a board says, no task ends, and none goes beyond the configured limit.
func FuzzAnswers(f *testing.F) {
	levels := "\x01\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 8) + "\x14\x00\x00\x00" + strings.Repeat("\x00", 8) +
		"\x04mail\x00\x00\x00\x7aD\x00\x00\x00\x00\x00\x00\x7aD"
	report := "0000000000000007\x01" + strings.Repeat("\x01", 24) + "\x04mail\x04\x00" + strings.Repeat("\x00", 8) + "\x00\x00\x7aD"
	text := func(s string) string { return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n" }
	follower := "*4\r\n" + text("7") + text("3") + ":0\r\n" + text(levels)
	leader := "*5\r\n" + text("7") + text("3") + ":1\r\n" + text(levels) + "*4\r\n" + text("a") + text(report) + text("b") + text("garbage")
	for _, answer := range []string{
		follower, leader, follower + follower, leader + leader + ":1\r\n", leader[:len(leader)/2],
		"*4\r\n" + text("7") + text("2") + ":0\r\n" + text(strings.Repeat(levels, 100)),
		"-NOSCRIPT x\r\n" + follower, "-NOPERM x\r\n", "-OOM x\r\n", "-LOADING x\r\n", "+OK\r\n", "$-1\r\n", "%1\r\n:1\r\n*1\r\n:1\r\n",
		"*3\r\n:7\r\n:3\r\n:0\r\n", "*5\r\n" + text("7") + text("281474976710656") + ":1\r\n$-1\r\n*-1\r\n", "*2147483647\r\n$-1\r\n",
	} {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		fl, _ := heard(t, answer)
		gate, err := quota.New(quota.Config{Allocator: fl})
		if err != nil {
			t.Fatal(err)
		}
		admitted := map[string]float64{}
		for at := time.Duration(0); at < 3*time.Second; at += 10 * time.Millisecond {
			for range 15 {
				for _, customer := range []string{"mail", "other"} {
					if _, err := gate.Admit(t0.Add(at), spillway.Call{Customer: customer}); err == nil {
						admitted[customer]++
					}
				}
			}
		}
		if mail, other := admitted["mail"], admitted["other"]; mail > 4001 || other > 801 || mail == 0 || other == 0 {
			t.Errorf("3 s with an answer of %q: mail had %v calls and another customer %v, want at most 4000 and 800, and not none", answer, mail, other)
		}
	})
}
