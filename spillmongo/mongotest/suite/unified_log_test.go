package suite_test

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A logMessage is one that a client wrote to its log.
type logMessage struct {
	level, component string
	data             bson.D
}

// components are the log components of the format, with the prefixes of their messages.
var components = []struct {
	name      string
	component options.LogComponent
	begin     []string
}{
	{"command", options.LogComponentCommand, []string{"Command "}},
	{"serverSelection", options.LogComponentServerSelection, []string{"Server selection", "Waiting for suitable"}},
	{"connection", options.LogComponentConnection, []string{"Connection "}},
	{"topology", options.LogComponentTopology, []string{"Topology", "Starting", "Stopped", "Server "}},
}

// logger returns options by which c sees what the client logs, at the levels by
// component.
func (c *unifiedClient) logger(levels map[string]string) *options.LoggerOptions {
	o := options.Logger().SetSink(c).SetMaxDocumentLength(10_000)
	for _, known := range components {
		switch levels[known.name] {
		case "debug", "trace":
			o.SetComponentLevel(known.component, options.LogLevelDebug)
		case "info", "notice":
			o.SetComponentLevel(known.component, options.LogLevelInfo)
		}
	}
	return o
}

// Info is that of a log sink.
func (c *unifiedClient) Info(level int, msg string, kv ...any) {
	m := logMessage{level: "info"}
	if level > 0 {
		m.level = "debug"
	}
	for _, known := range components {
		if m.component == "" && slices.ContainsFunc(known.begin, func(s string) bool { return strings.HasPrefix(msg, s) }) {
			m.component = known.name
		}
	}
	if !slices.Contains(kv, any("message")) {
		m.data = bson.D{{Key: "message", Value: msg}}
	}
	for i := 0; i+1 < len(kv); i += 2 {
		m.data = append(m.data, bson.E{Key: fmt.Sprint(kv[i]), Value: kv[i+1]})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages = append(c.messages, m)
}

func (c *unifiedClient) Error(error, string, ...any) {}

// expectMessages compares what a client logged, in order.
func (u *unified) expectMessages(client string, want, ignore []bson.Raw, extra bool) {
	c := u.clients[client]
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []logMessage
	for _, m := range c.messages {
		if !slices.ContainsFunc(ignore, func(i bson.Raw) bool { return u.matchMessage(i, m) == "" }) && m.setsNoFailPoint() {
			got = append(got, m)
		}
	}
	if len(got) < len(want) || len(got) > len(want) && !extra {
		u.t.Fatalf("%d messages, want %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		if why := u.matchMessage(w, got[i]); why != "" {
			u.t.Errorf("message %d: %s", i, why)
		}
	}
}

func (m *logMessage) setsNoFailPoint() bool {
	return !slices.ContainsFunc(m.data, func(e bson.E) bool { return e.Key == "commandName" && e.Value == "configureFailPoint" })
}

func (u *unified) matchMessage(want bson.Raw, got logMessage) string {
	if level, ok := want.Lookup("level").StringValueOK(); ok && level != got.level {
		return fmt.Sprintf("level %s, want %s", got.level, level)
	}
	if component, ok := want.Lookup("component").StringValueOK(); ok && component != got.component {
		return fmt.Sprintf("component %s, want %s", got.component, component)
	}
	doc, _ := want.Lookup("data").DocumentOK()
	return u.match(value(doc), value(got.data), true)
}
