package schematest

import (
	"cmp"
	"fmt"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// documented adds to each setting of a policy the default and the allowed values, which are
// taken from the documentation of the library, and removes the settings that the files do not
// have. The package policyconf has the tags.
func (s schema) documented(all *jsonschema.Schema) error {
	l := library{}
	for _, t := range strict.Structs(reflect.TypeOf(s.of), nil) {
		def := all.Definitions[t.Name()]
		if def == nil {
			continue
		}
		for f := range t.Fields() {
			name := f.Tag.Get("yaml")
			if s.without != "" && strings.Contains(string(f.Tag), s.without) {
				def.Properties.Delete(name)
				continue
			}
			values, err := l.values(t, f)
			if err != nil {
				return err
			}
			if p, ok := def.Properties.Get(name); ok && values != "" {
				p.Description += " " + values
			}
		}
	}
	return nil
}

// A library has the documentation of fields, by package, type and field: throttle.Config.K.
type library map[string]string

// words finds where a word of a type's name ends, as in AWSStandard.
var words = regexp.MustCompile(`([A-Za-z])([A-Z][a-z])`)

// values returns the default and the allowed values of a setting. Where a setting is for
// several Configs that differ, it returns the values of each.
func (l library) values(section reflect.Type, f reflect.StructField) (string, error) {
	if own, ok := f.Tag.Lookup("default"); ok {
		return own, nil
	}
	var texts, of []string
	for target := range strings.FieldsSeq(f.Tag.Get("sets")) {
		doc, err := l.lookup(target)
		if err != nil {
			return "", err
		}
		if text := l.translated(sentences(doc), target, section); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
			name := strings.TrimSuffix(strings.Split(target, ".")[1], "Config")
			of = append(of, strings.ToLower(words.ReplaceAllString(name, "${1}_$2")))
		}
	}
	if len(texts) < 2 {
		return strings.Join(texts, ""), nil
	}
	for i := range texts {
		texts[i] = "Of " + of[i] + ": " + strings.ToLower(texts[i][:1]) + texts[i][1:]
	}
	return strings.Join(texts, " "), nil
}

// valued matches the sentences that say what values a field may have.
var valued = regexp.MustCompile(`^(All z|Z|The z|The empty string|Nil|Empty|They must|It must|The values must|Otherwise|Negative)`)

// sentences returns the sentences of a comment that say what values the field may have.
func sentences(doc string) string {
	var all []string
	for part := range strings.SplitSeq(strings.Join(strings.Fields(doc), " "), ". ") {
		part = strings.TrimSuffix(part, ".")
		if valued.MatchString(part) {
			all = append(all, links.ReplaceAllString(part, "")+".")
		}
	}
	return strings.Join(all, " ")
}

// identifier matches words that may be fields of a Config.
var identifier = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// translated replaces the fields of a Config in a text by the names of their settings.
func (l library) translated(text, target string, section reflect.Type) string {
	config := target[:strings.LastIndex(target, ".")+1]
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		if _, ok := l[config+word]; !ok {
			return word
		}
		for f := range section.Fields() {
			if slices.Contains(strings.Fields(f.Tag.Get("sets")), config+word) {
				return f.Tag.Get("yaml")
			}
		}
		return strict.Path(word)
	})
}

// links matches the names of constants in a comment, which files do not have.
var links = regexp.MustCompile(` \(\[\w+\]\)`)

// lookup returns the comment of a field, such as load.Config.Targets.CPU.
func (l library) lookup(target string) (string, error) {
	parts := strings.Split(target, ".")
	name := parts[0]
	if _, ok := l[name]; !ok {
		if err := l.read(name); err != nil {
			return "", err
		}
	}
	last := parts[len(parts)-2:] // Config.Targets.CPU is Targets.CPU, as its field has the name of its type
	doc, ok := l[name+"."+last[0]+"."+last[1]]
	if !ok {
		return "", fmt.Errorf("%s: no such field of the library", target)
	}
	return doc, nil
}

// paths has the packages whose path is not their name.
var paths = map[string]string{"fleet": "quota/fleet"}

// read reads the comments of the fields of a package.
func (l library) read(name string) error {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/seed90641741/spillway/"+cmp.Or(paths[name], name)).Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", name, err)
	}
	dir := strings.TrimSpace(string(out))
	var r jsonschema.Reflector
	if err := r.AddGoComments("", dir); err != nil {
		return err
	}
	l[name] = ""
	for field, comment := range r.CommentMap {
		if field, ok := strings.CutPrefix(field, dir+"."); ok {
			l[name+"."+field] = comment
		}
	}
	return nil
}
