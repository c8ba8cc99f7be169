package spillmongo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The log messages of commands, as the specification names them.
const (
	logStarted   = "Command started"
	logSucceeded = "Command succeeded"
	logFailed    = "Command failed"
)

// logLevel is the level at which the driver gives messages of commands to a sink.
const logLevel = int(options.LogLevelDebug) - int(options.LogLevelInfo)

// A commandLog writes the log messages of commands: the driver's, corrected for the last
// attempt, and further ones for attempts that the driver does not know of.
type commandLog struct {
	sink  options.LogSink
	file  *os.File // that the sink writes to, if it was opened here
	width int      // of commands, answers and failures, in bytes

	mu      sync.Mutex
	running map[int64]struct{} // by request ID: commands that the driver logged, and will log the end of
}

// newCommandLog returns nil unless commands are logged.
func newCommandLog(o *options.LoggerOptions) (*commandLog, error) {
	if o == nil {
		o = options.Logger()
	}
	if !logsCommands(o.ComponentLevels) {
		return nil, nil //nolint:nilnil // there is nothing to log to, which is no error
	}
	l := &commandLog{sink: o.Sink, width: int(min(o.MaxDocumentLength, 1<<30)), running: map[int64]struct{}{}}
	if l.width == 0 {
		l.width = documentLength(os.Getenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH"))
	}
	var err error
	if l.sink == nil {
		l.sink, l.file, err = environmentSink(os.Getenv("MONGODB_LOG_PATH"))
	}
	return l, err
}

// logsCommands reports whether the driver logs commands: by the options, else by the
// environment.
func logsCommands(levels map[options.LogComponent]options.LogLevel) bool {
	debug := func(c options.LogComponent, variables ...string) bool {
		if level, ok := levels[c]; ok {
			return level >= options.LogLevelDebug
		}
		for _, name := range variables {
			if value := os.Getenv(name); value != "" {
				return strings.EqualFold(value, "debug") || strings.EqualFold(value, "trace")
			}
		}
		return false
	}
	return debug(options.LogComponentCommand, "MONGODB_LOG_ALL", "MONGODB_LOG_COMMAND") ||
		debug(options.LogComponentAll, "MONGODB_LOG_ALL")
}

// documentLength is that of the environment, or the driver's default.
func documentLength(variable string) int {
	if n, err := strconv.ParseUint(variable, 10, 30); err == nil {
		return int(n)
	}
	return 1000
}

// logger returns the options with which the driver logs to e.
func (e *emitter) logger(o *options.LoggerOptions) *options.LoggerOptions {
	if e == nil || e.log == nil {
		return o
	}
	own := options.Logger()
	if o != nil {
		own.ComponentLevels, own.MaxDocumentLength = maps.Clone(o.ComponentLevels), o.MaxDocumentLength
	}
	return own.SetSink(sink{e})
}

// A sink is what the driver logs to.
type sink struct{ emitter *emitter }

func (s sink) Error(err error, msg string, keysAndValues ...any) {
	s.emitter.log.sink.Error(err, msg, keysAndValues...)
}

func (s sink) Info(level int, msg string, keysAndValues ...any) {
	request, _ := logValue(keysAndValues, "requestId").(int64)
	s.emitter.reporting(request, func() { s.info(request, level, msg, keysAndValues) })
}

func (s sink) info(request int64, level int, msg string, keysAndValues []any) {
	l := s.emitter.log
	switch msg {
	case logStarted:
		l.begin(request)
		s.emitter.sessions.shownInLog(keysAndValues)
	case logSucceeded, logFailed:
		l.end(request)
		f, ok := s.emitter.meet(request)
		if ok && !f.drop {
			l.last(msg, keysAndValues, f)
		}
		if ok {
			return
		}
	}
	l.sink.Info(level, msg, keysAndValues...)
}

func (l *commandLog) begin(request int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[request] = struct{}{}
}

func (l *commandLog) end(request int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, request)
}

// has reports whether the driver has logged the first attempt at a command, which it
// does for some commands only, and for no getMore.
func (l *commandLog) has(request int64) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.running[request]
	return ok
}

// last writes what the driver would write of the first attempt, of the last one.
func (l *commandLog) last(msg string, kv []any, f fate) {
	name, _ := logValue(kv, "commandName").(string)
	database, _ := logValue(kv, "databaseName").(string)
	key, text := "reply", logValue(kv, "reply")
	if msg == logFailed {
		key, text = "failure", logValue(kv, "failure")
	}
	if f.err != nil {
		msg, key, text = logFailed, "failure", l.cut(f.err.Error())
	}
	l.write(msg, name, database, f.ids, "durationMS", time.Since(f.start).Milliseconds(), key, text)
}

func (l *commandLog) started(name, database string, i ids, body bson.Raw) {
	l.write(logStarted, name, database, i, "command", l.document(body))
}

func (l *commandLog) finished(f event.CommandFinishedEvent, i ids, v verdict, reply bson.Raw) {
	msg, key := logFailed, "failure"
	var text string
	if v.done {
		msg, key, text = logSucceeded, "reply", l.document(reply)
	} else {
		text = l.cut(v.err.Error())
	}
	l.write(msg, f.CommandName, f.DatabaseName, i, "durationMS", f.Duration.Milliseconds(), key, text)
}

// write writes a message with the keys of the specification, in the driver's order.
func (l *commandLog) write(msg, name, database string, i ids, more ...any) {
	host, port, err := net.SplitHostPort(i.address)
	if err != nil {
		host = i.address
	}
	kv := append([]any{
		"commandName", name, "databaseName", database, "driverConnectionId", i.driver, "message", msg,
		"operationId", int32(0), "requestId", i.request, "serverHost", host,
	}, more...)
	if n, err := strconv.ParseInt(port, 10, 32); err == nil {
		kv = append(kv, "serverPort", n)
	}
	if i.server != nil {
		kv = append(kv, "serverConnectionId", *i.server)
	}
	if i.service != nil {
		kv = append(kv, "serviceId", i.service.Hex())
	}
	l.sink.Info(logLevel, msg, kv...)
}

// document returns a document as text, cut to the width.
func (l *commandLog) document(doc bson.Raw) string {
	if len(doc) == 0 {
		return "{}"
	}
	return documentText(doc, l.width)
}

func (l *commandLog) cut(s string) string {
	if len(s) <= l.width {
		return s
	}
	return strings.ToValidUTF8(s[:l.width], "") + "..."
}

func logValue(kv []any, key string) any {
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i] == key {
			return kv[i+1]
		}
	}
	return nil
}

// shownInLog puts the ID that the server knows into the text of a command.
func (s *sessions) shownInLog(kv []any) {
	i := slices.Index(kv, any("command")) + 1
	if s.some.Load() == 0 || i == 0 || i == len(kv) {
		return
	}
	text, _ := kv[i].(string)
	_, rest, ok := strings.Cut(text, `"lsid"`)
	_, rest, found := strings.Cut(rest, `"base64":"`)
	if !ok || !found || len(rest) < base64.StdEncoding.EncodedLen(len(sessionID{})) {
		return
	}
	encoded := rest[:base64.StdEncoding.EncodedLen(len(sessionID{}))]
	id, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(id) != len(sessionID{}) {
		return
	}
	name, _ := logValue(kv, "commandName").(string)
	if wire := s.inLog(sessionID(id), name); wire != sessionID(id) {
		kv[i] = strings.Replace(text, encoded, base64.StdEncoding.EncodeToString(wire[:]), 1)
	}
}

// inLog resolves for the log, which comes before all else and without a context: in a
// session of the application it does not know whether the use is new.
func (s *sessions) inLog(id sessionID, command string) sessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.all[id]
	if state == nil {
		return id
	}
	if state.dirty && !state.explicit && !ofCursor(command) {
		state.renew()
	}
	return state.wire
}

// A jsonSink writes a line of JSON for each message, like the driver's own sink, which
// is not public.
type jsonSink struct {
	mu  sync.Mutex
	out *json.Encoder
}

// environmentSink returns the sink that the environment names: a file, stdout or,
// without a name, stderr.
func environmentSink(path string) (options.LogSink, *os.File, error) {
	to := func(w io.Writer) *jsonSink { return &jsonSink{out: json.NewEncoder(w)} }
	switch strings.ToLower(path) {
	case "", "stderr":
		return to(os.Stderr), nil, nil
	case "stdout":
		return to(os.Stdout), nil, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o666) //nolint:gosec // as the driver does
	if err != nil {
		return nil, nil, fmt.Errorf("spillmongo: MONGODB_LOG_PATH: %w", err)
	}
	return to(f), f, nil
}

func (s *jsonSink) Info(_ int, msg string, keysAndValues ...any) {
	line := map[string]any{"timestamp": time.Now().UnixNano(), "message": msg}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if key, ok := keysAndValues[i].(string); ok {
			line[key] = keysAndValues[i+1]
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(line) //nolint:errchkjson // nobody is left to report it to
}

func (s *jsonSink) Error(err error, msg string, keysAndValues ...any) {
	s.Info(0, msg, append(keysAndValues, "error", err.Error())...)
}
