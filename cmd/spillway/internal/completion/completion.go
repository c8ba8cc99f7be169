// Package completion completes the command line of the program in a shell.
//
// The shell calls the program with the line so far in the environment variable COMP_LINE, as "complete -C" of bash does,
// and reads one candidate from each line of its output: commands, flags, and the values of flags and arguments that have
// a fixed set of them. Where there is no candidate, bash and zsh complete names of files.
package completion

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// scripts switch completion on, by shell. They need the path of the program: bash and zsh read it as a command of its own.
var scripts = map[string]string{
	"bash": "complete -o default -o bashdefault -C %[2]s spillway\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -o bashdefault -C %[2]s spillway\n",
	"fish": `function __complete_spillway
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    %[1]s
end
complete -f -c spillway -a "(__complete_spillway)"
`,
}

// Command is "spillway completion".
type Command struct {
	Shell string `arg:"" optional:"" enum:"bash,zsh,fish," default:"" help:"bash, zsh or fish (default: that of SHELL)."`
}

// Help returns what is added to the help of the command.
func (Command) Help() string {
	return "Prints a script that switches completion on. Add it to the startup file of the shell:\n\n" +
		"    source <(spillway completion bash)        # ~/.bashrc\n" +
		"    source <(spillway completion zsh)         # ~/.zshrc\n" +
		"    spillway completion fish | source         # ~/.config/fish/config.fish"
}

// Run prints the script.
func (c *Command) Run(k *kong.Context) error {
	shell := cmp.Or(c.Shell, filepath.Base(os.Getenv("SHELL")))
	script, ok := scripts[shell]
	if !ok {
		return fmt.Errorf("the shell is %q, must be bash, zsh or fish: name one as the argument", shell)
	}
	path, err := os.Executable()
	if err == nil {
		_, err = fmt.Fprintf(k.Stdout, script, quoted(path), quoted(quoted(path)))
	}
	return err
}

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[\w./-]+$`)

// quoted returns a text as one word of a shell.
func quoted(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Answer prints the candidates for the line of a shell that asks, and reports whether one has asked.
func Answer(k *kong.Kong) bool {
	line := os.Getenv("COMP_LINE")
	if line == "" {
		return false
	}
	if point, err := strconv.Atoi(os.Getenv("COMP_POINT")); err == nil && point >= 0 && point < len(line) {
		line = line[:point]
	}
	for _, word := range candidates(k.Model.Node, line) {
		fmt.Fprintln(k.Stdout, word)
	}
	return true
}

// candidates returns what the last word of a line can become.
func candidates(n *kong.Node, line string) (all []string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	last := ""
	if !strings.HasSuffix(line, " ") {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	if len(words) == 0 {
		return nil // the name of the program
	}
	n, arguments, before := walk(n, words[1:])
	flag, value, assigned := strings.Cut(last, "=")
	switch {
	case before != nil:
		all = values(before.Value)
	case assigned && strings.HasPrefix(flag, "-"):
		if f := find(n, flag); f != nil {
			all, last = values(f.Value), value // the shell takes = for the end of a word
		}
	case strings.HasPrefix(last, "-"):
		all = flags(n)
	case len(n.Children) > 0:
		all = commands(n)
	case arguments < len(n.Positional):
		all = values(n.Positional[arguments])
	}
	return slices.DeleteFunc(all, func(word string) bool { return !strings.HasPrefix(word, last) })
}

// walk follows complete words. It returns the command that they select, how many arguments that one has, and
// the flag whose value is next, if one is.
func walk(n *kong.Node, words []string) (selected *kong.Node, arguments int, before *kong.Flag) {
	for _, word := range words {
		child := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == word })
		switch {
		case before != nil:
			before = nil
		case strings.HasPrefix(word, "-"):
			if f := find(n, word); f != nil && !f.IsBool() && !f.IsCounter() {
				before = f
			}
		case child >= 0:
			n, arguments = n.Children[child], 0
		default:
			arguments++
		}
	}
	return n, arguments, before
}

// find returns the flag of a command that a word names, or nil. --help and others belong to all commands.
func find(n *kong.Node, word string) *kong.Flag {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func flags(n *kong.Node) (all []string) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			all = append(all, "--"+f.Name)
		}
	}
	slices.Sort(all)
	return all
}

func commands(n *kong.Node) (all []string) {
	for _, c := range n.Children {
		if !c.Hidden {
			all = append(all, c.Name)
		}
	}
	return all
}

// values returns the fixed set of values that a flag or an argument may have.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(value string) bool { return value == "" })
}
