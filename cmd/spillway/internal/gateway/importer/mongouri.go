package importer

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// uri is a connection string as a document.
type uri = map[string]any

// maxHosts is how many servers a connection string may name.
const maxHosts = 1000

var errURI = errors.New("is no connection string: must be mongodb://user:password@host:port,host:port/database?options, " +
	"with : / ? # [ ] @ in names and passwords as %XX")

// parseURI takes a connection string apart. Names of options are in lower case, as drivers
// read them. Errors do not have the text.
func parseURI(text string) (uri, error) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errURI
	}
	scheme, rest, _ := strings.Cut(text, "://")
	rest, query, _ := strings.Cut(rest, "?")
	rest, database, _ := strings.Cut(rest, "/")
	doc := uri{"scheme": scheme}
	at := strings.LastIndexByte(rest, '@')
	if at >= 0 {
		user, password, some := strings.Cut(rest[:at], ":")
		if strings.ContainsAny(rest[:at], "@/") || strings.Contains(password, ":") {
			return nil, errURI
		}
		if doc["username"] = user; some {
			doc["password"] = password
		}
	}
	var hosts []any
	for host := range strings.SplitSeq(rest[at+1:], ",") {
		name, err := url.PathUnescape(host)
		if err != nil || name == "" || strings.ContainsAny(name, "/@ ") || !utf8.ValidString(name) || len(hosts) == maxHosts {
			return nil, errURI
		}
		hosts = append(hosts, name)
	}
	if doc["hosts"] = hosts; database != "" {
		doc["database"] = database
	}
	options := uri{}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, some := strings.Cut(pair, "=")
		name = strings.ToLower(name)
		value, err := url.PathUnescape(value)
		if _, again := options[name]; again || err != nil || name == "" || !some || !utf8.ValidString(value) {
			return nil, errURI
		}
		options[name] = value
	}
	if len(options) > 0 {
		doc["options"] = options
	}
	return doc, nil
}
