package suite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
)

// A logged is a log sink that keeps the messages of commands.
type logged struct {
	mu    sync.Mutex
	lines []map[string]any
	hook  func(msg string) // is called without the lock
}

func (l *logged) Info(level int, msg string, kv ...any) {
	if !strings.HasPrefix(msg, "Command ") {
		return
	}
	line := map[string]any{"level": level, "msg": msg}
	for i := 0; i+1 < len(kv); i += 2 {
		line[kv[i].(string)] = kv[i+1]
	}
	l.mu.Lock()
	l.lines = append(l.lines, line)
	l.mu.Unlock()
	if l.hook != nil {
		l.hook(msg)
	}
}

func (l *logged) Error(error, string, ...any) {}

func (l *logged) take() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func logTo(sink options.LogSink) func(*options.ClientOptions) {
	return func(o *options.ClientOptions) {
		o.SetLoggerOptions(options.Logger().SetComponentLevel(options.LogComponentCommand, options.LogLevelDebug).SetSink(sink))
	}
}

// TestLog: each attempt has a message when it starts and one when it ends, with the
// request ID of the event, and with the keys that the driver's own messages have.
func TestLog(t *testing.T) {
	for _, monitored := range []bool{true, false} {
		for _, row := range []struct {
			command, steps string
			want           string // S started, + succeeded, - failed
		}{
			{"find", "s", "S+"},
			{"find", "OOs", "S-S-S+"},
			{"find", "OOOOOO", "S-S-S-S-S-S-"},
			{"find", "cs", "S-S+"},
			{"find", "xn", "S-S-"},
			{"insert", "Ocs", "S-S-S+"},
			{"insert", "ww", "S+S+"},
			{"insert", "xW", "S-S-S-S-S-S-"},
			{"update", "WWs", "S-S-S+"},
		} {
			bubble(t, func(t *testing.T) {
				sink := new(logged)
				r := setUp(t, pipes, spillmongo.Config{Rand: fixed(0)}, logTo(sink), func(o *options.ClientOptions) {
					if !monitored {
						o.SetMonitor(nil)
					}
				})
				must(r.coll.InsertOne(t.Context(), bson.D{}))
				first := sink.take()
				r.events.take(t, "")
				steps := row.steps
				if row.want == "S-S-S-S-S-S-" {
					steps += strings.Repeat(steps[1:], 10)
				}
				r.script.set(row.command, steps)
				_ = operations[row.command](t.Context(), r)
				lines, got := sink.take(), ""
				for i, line := range lines {
					kind := map[any]string{"Command started": "S", "Command succeeded": "+", "Command failed": "-"}[line["msg"]]
					got += kind
					if kind != "S" && line["requestId"] != lines[i-1]["requestId"] {
						t.Errorf("%v follows %v", line, lines[i-1])
					}
					sameKeys(t, line, first)
				}
				if got != row.want {
					t.Errorf("%s %s: messages %s, want %s", row.command, row.steps, got, row.want)
				}
				for i, a := range r.events.take(t, row.command) {
					if 2*i < len(lines) && a.request != lines[2*i]["requestId"] {
						t.Errorf("the event of attempt %d is of request %d, its message of %v", i, a.request, lines[2*i]["requestId"])
					}
				}
			})
		}
	}
}

// sameKeys expects a message to have the same keys as the messages of the driver.
func sameKeys(t *testing.T, line map[string]any, own []map[string]any) {
	t.Helper()
	like := own[0]
	if line["msg"] != "Command started" {
		like = own[1]
	}
	for key, value := range like {
		if key == "reply" && line["msg"] == "Command failed" {
			key = "failure"
		}
		if fmt.Sprintf("%T", line[key]) != fmt.Sprintf("%T", value) {
			t.Errorf("%s is a %T in %v, the driver's is a %T", key, line[key], line, value)
		}
	}
	if len(line) != len(like) {
		t.Errorf("%v, the driver's has %v", line, like)
	}
}

// TestLogOfCursors: the driver does not log getMore, and this package adds no log line for
// one.
func TestLogOfCursors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := new(logged)
		r := setUp(t, pipes, spillmongo.Config{}, logTo(sink))
		r.insertSome()
		r.script.set("getMore", "OOss")
		cur := must(r.coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(2)))
		var docs []bson.D
		if err := cur.All(t.Context(), &docs); err != nil || len(docs) != 5 {
			t.Fatal(docs, err)
		}
		started, ended := 0, 0
		for _, line := range sink.take() {
			if line["commandName"] == "getMore" {
				t.Errorf("%v", line)
			}
			if line["msg"] == "Command started" {
				started++
			} else {
				ended++
			}
		}
		if started != ended {
			t.Errorf("%d started, %d ended", started, ended)
		}
	})
}

// TestLogIsCut: commands, answers and failures are cut to the length that was asked for,
// and those with secrets are not shown.
func TestLogIsCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := new(logged)
		r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) {
			o.SetLoggerOptions(options.Logger().SetComponentLevel(options.LogComponentAll, options.LogLevelDebug).SetSink(sink).SetMaxDocumentLength(20))
		})
		r.script.set("insert", "OOs")
		must(r.coll.InsertOne(t.Context(), bson.D{{Key: "text", Value: strings.Repeat("é", 1000)}}))
		for _, line := range sink.take() {
			for _, key := range []string{"command", "reply", "failure"} {
				if text, ok := line[key].(string); ok && len(text) > 23 {
					t.Errorf("%s is %q", key, text)
				}
			}
		}
		r.script.set("createUser", "Os")
		_ = r.client.Database("test").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: "ann"}, {Key: "pwd", Value: "secret"}}).Err()
		for _, line := range sink.take() {
			if strings.Contains(fmt.Sprint(line), "secret") {
				t.Errorf("%v", line)
			}
		}
	})
}

// TestLogThatPanics: what a sink does wrong at a retry ends the command, as it does in
// the driver, and leaves nothing behind: no token, no connection, no lock.
func TestLogThatPanics(t *testing.T) {
	for at := range 6 {
		bubble(t, func(t *testing.T) {
			sink, b, n := new(logged), bucket(500), 0
			r := setUp(t, pipes, spillmongo.Config{Budget: b, Rand: fixed(0)}, logTo(sink), func(o *options.ClientOptions) { o.SetMaxPoolSize(1).SetMonitor(nil) })
			if err := r.client.Ping(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			tokens := b.Stats(time.Now()).Tokens
			sink.hook = func(string) {
				if n++; n == at+1 {
					panic("full disk")
				}
			}
			r.script.set("find", "OOs")
			panicked := func() (p any) {
				defer func() { p = recover() }()
				r.coll.FindOne(t.Context(), bson.D{})
				return nil
			}()
			if panicked == nil {
				t.Fatalf("no panic at message %d", at)
			}
			r.script.set("find", "")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := r.coll.Find(ctx, bson.D{}); err != nil { // the only connection is free
				t.Errorf("after a panic at message %d: %v", at, err)
			}
			if got := b.Stats(time.Now()).Tokens; got < tokens-2 || got > tokens+2.2 {
				t.Errorf("after a panic at message %d: %v tokens, %v before", at, got, tokens)
			}
		})
	}
}

// TestLogThatBlocks: a sink that blocks holds up its own command and no other one.
func TestLogThatBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		sink, n := new(logged), 0
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(0)}, logTo(sink))
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		sink.hook = func(msg string) {
			mu.Lock()
			n++
			block := n == 3 // the start of the first retry
			mu.Unlock()
			if block {
				<-release
			}
		}
		var work sync.WaitGroup
		r.script.set("find", "OOs")
		work.Go(func() { r.coll.FindOne(t.Context(), bson.D{}) })
		synctest.Wait()
		for range 10 {
			r.script.set("insert", "Os")
			must(r.coll.InsertOne(t.Context(), bson.D{}))
		}
		close(release)
		work.Wait()
	})
}

// TestLogByEnvironment: the log that the environment asks for has the retries as well.
func TestLogByEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv("MONGODB_LOG_PATH", path)
	t.Setenv("MONGODB_LOG_COMMAND", "debug")
	t.Setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", "30")
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(0)})
		r.script.set("find", "OOs")
		_ = r.coll.FindOne(t.Context(), bson.D{})
		if err := r.client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		r.client = must(mongo.Connect(r.Options()))
	})
	counts := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(must(os.ReadFile(path)))); s.Scan(); {
		var line struct{ Message, CommandName, Command string }
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.CommandName == "find" {
			counts[line.Message]++
		}
		if len(line.Command) > 33 {
			t.Errorf("%q", line.Command)
		}
	}
	if counts["Command started"] != 3 || counts["Command failed"] != 2 || counts["Command succeeded"] != 1 {
		t.Errorf("%v", counts)
	}
}
