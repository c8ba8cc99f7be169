package importer

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// AWS imports how SDKs of AWS retry, from files of two kinds: lines of an environment
// (AWS_RETRY_MODE=standard), and the configuration file of the SDKs, of which the
// section of one profile counts. What the environment says counts for more, and so
// does what comes first.
func AWS(docs []Document, profile string, o Options) (*Result, error) {
	b := newBuilder(o)
	x := b.cluster("aws")
	a := awsImport{builder: b, cluster: x, profile: profile}
	if err := unique(docs); err != nil {
		return nil, err
	}
	var roots []cursor
	for _, d := range docs {
		root, err := a.parse(d)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	for _, section := range []string{"environment", "profile " + profile} {
		for _, root := range roots {
			a.section(root.get(section))
		}
	}
	for _, root := range roots {
		for _, section := range root.fields() {
			section.leave("it is of another profile or section, or does not concern retries", "")
		}
	}
	b.place(x)
	return b.finish(roots)
}

// awsImport is what is known while settings are read.
type awsImport struct {
	*builder

	cluster        *config.Cluster
	profile        string
	mode, attempts bool // were said
}

// parse reads a file into sections of settings.
func (a *awsImport) parse(d Document) (cursor, error) {
	if len(d.Text) > maxSize {
		return cursor{}, fmt.Errorf("%s has %d bytes, more than %d", d.Name, len(d.Text), maxSize)
	}
	all := make(map[string]any)
	section, above := "environment", ""
	lines := bufio.NewScanner(bytes.NewReader(strict.Plain(d.Text)))
	lines.Buffer(nil, maxSize+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			if section = strings.Join(strings.Fields(line[1:len(line)-1]), " "); section == "default" {
				section = "profile default"
			}
			above = ""
			continue
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`)
		if !ok || key == "" {
			return cursor{}, fmt.Errorf("%s:%d: must be a section, or a name, = and a value", d.Name, n)
		}
		nested := above != "" && strings.ContainsAny(lines.Text()[:1], " \t")
		if !nested {
			above = map[bool]string{true: key}[value == ""]
		} else {
			key = above + "." + key
		}
		put(all, section, key, value)
	}
	if err := lines.Err(); err != nil {
		return cursor{}, fmt.Errorf("%s: %w", d.Name, err)
	}
	return cursor{a.report, d.Name + ": ", all}, nil
}

// put adds a setting. Of two with one name both are kept, so that nothing is lost.
func put(all map[string]any, section, key, value string) {
	settings, _ := all[section].(map[string]any)
	if settings == nil {
		settings = make(map[string]any)
		all[section] = settings
	}
	name := key
	for n := 2; settings[name] != nil; n++ {
		name = fmt.Sprintf("%s (%d)", key, n)
	}
	settings[name] = value
}

// section imports the settings of one section.
func (a *awsImport) section(c cursor) {
	mode, attempts := c.get("AWS_RETRY_MODE"), c.get("AWS_MAX_ATTEMPTS")
	if !mode.there() && !attempts.there() {
		mode, attempts = c.get("retry_mode"), c.get("max_attempts")
	}
	if mode.there() {
		a.retryMode(mode)
	}
	if attempts.there() {
		if a.attempts {
			attempts.leave("another place says it, which counts for more", "")
		} else if a.cluster.Retry.Mode = "enforce"; attempts.text() != "0" {
			before := a.cluster.Retry.Attempts
			a.setCount(a.cluster, attempts, "retry.attempts", "", func(x *config.Cluster, n int) { x.Retry.Attempts = n })
			a.attempts = a.cluster.Retry.Attempts != before
		}
		attempts.leave("it must be above 0", "")
	}
	c.get("AWS_NEW_RETRIES_2026").leave("which revision of the retries an SDK has does not matter here", "retry.base and retry.max")
	for _, setting := range c.fields() {
		setting.leave("it does not concern retries", "")
	}
}

// retryMode imports a mode.
func (a *awsImport) retryMode(c cursor) {
	if a.mode {
		c.leave("another place says it, which counts for more", "")
		return
	}
	throttled := false
	reason := "the budget is a share of the requests, retry.ratio, and not 500 tokens of which a retry takes 5"
	switch strings.ToLower(c.text()) {
	case "standard":
	case "legacy":
		reason = "it counts as standard, which bounds all retries; " + reason
	case "adaptive":
		throttled = true
		reason = "requests are refused in proportion to what the service refuses, and do not wait for a rate; " + reason
	default:
		c.leave("it must be legacy, standard or adaptive", "")
		return
	}
	a.mode = true
	a.setCluster(a.cluster, c, "retry.mode", reason, func(x *config.Cluster) {
		x.Retry.Mode, x.Retry.Base, x.Retry.Max = "enforce", time.Second, 20*time.Second
		if throttled {
			x.Throttle.Mode = "enforce"
		}
	})
}
