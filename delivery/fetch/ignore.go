package fetch

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxIgnoreLines bounds the patterns of one app: each is tried on each file.
const maxIgnoreLines = 100

// Ignore leaves out the files and folders below folder that patterns name, in the syntax of gitignore(5). A link that is left
// out is as little there as a file. Without patterns it is files itself.
//
// Errors: ErrInvalid for a pattern that cannot be read, ErrTooLarge for more than 100 of them.
func Ignore(files fs.FS, folder, patterns string) (fs.FS, error) {
	f := &filtered{files: files, folder: path.Clean(folder)}
	for line := range strings.Lines(patterns) {
		rule, err := ignoreRule(strings.TrimRight(line, "\r\n"))
		if err != nil {
			return nil, err
		}
		if rule.match == nil {
			continue
		}
		if f.rules = append(f.rules, rule); len(f.rules) > maxIgnoreLines {
			return nil, tooMany("the number of patterns in ignore", maxIgnoreLines)
		}
	}
	if len(f.rules) == 0 {
		return files, nil
	}
	return f, nil
}

// rule is one pattern.
type rule struct {
	match *regexp.Regexp
	// keep is set of a pattern that begins with "!", folders of one that ends with "/".
	keep, folders bool
}

// ignoreRule reads a line. It becomes a regular expression, which takes no longer for a pattern that is made to take long.
func ignoreRule(line string) (rule, error) {
	var r rule
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, nil
	}
	pattern := line
	pattern, r.keep = strings.CutPrefix(pattern, "!")
	pattern, r.folders = strings.CutSuffix(pattern, "/")
	if pattern == "" {
		return r, nil
	}
	begin := "^"
	if !strings.Contains(pattern, "/") {
		begin = "^(?:.*/)?"
	}
	var err error
	if r.match, err = regexp.Compile(begin + expressionOf(strings.TrimPrefix(pattern, "/")) + "$"); err != nil {
		return r, fail(ErrInvalid, "the pattern %q of ignore cannot be read: write it as in a .gitignore", printable(line))
	}
	return r, nil
}

// expressionOf translates a pattern of gitignore(5).
func expressionOf(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); {
		rest, begins := pattern[i:], i == 0 || pattern[i-1] == '/'
		switch {
		case begins && strings.HasPrefix(rest, "**/"):
			out.WriteString("(?:.*/)?")
			i += 3
		case begins && rest == "**":
			out.WriteString(".+")
			i += 2
		case rest[0] == '*':
			out.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			out.WriteString("[^/]")
			i++
		case rest[0] == '[':
			class, length := classOf(rest)
			out.WriteString(class)
			i += length
		case rest[0] == '\\' && len(rest) > 1:
			out.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			out.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return out.String()
}

// classOf translates the set of characters that pattern begins with, and says how long it is. One that does not end is left to
// be refused.
func classOf(pattern string) (class string, length int) {
	i, begin := 1, "["
	if len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^') {
		i, begin = 2, "[^/"
	}
	var inside strings.Builder
	for first := true; i < len(pattern) && (first || pattern[i] != ']'); first = false {
		text, length := memberOf(pattern[i:])
		inside.WriteString(text)
		i += length
	}
	if i >= len(pattern) {
		return "[", len(pattern)
	}
	return begin + inside.String() + "]", i + 1
}

// memberOf translates what text begins with inside a set: a class by its name, or a character.
func memberOf(text string) (member string, length int) {
	if strings.HasPrefix(text, "[:") && strings.Contains(text, ":]") {
		end := strings.Index(text, ":]") + len(":]")
		return text[:end], end
	}
	switch {
	case text[0] == '\\' && len(text) > 1:
		return text[:2], 2
	case strings.ContainsRune("[]^&", rune(text[0])):
		return `\` + text[:1], 1
	}
	return text[:1], 1
}

// filtered are files without those that are ignored.
type filtered struct {
	files  fs.FS
	folder string
	rules  []rule
}

var (
	_ fs.ReadDirFS  = (*filtered)(nil)
	_ fs.ReadFileFS = (*filtered)(nil)
	_ fs.StatFS     = (*filtered)(nil)
)

// ignored says whether something is left out. What is in a folder that is left out cannot be kept, as in Git.
func (f *filtered) ignored(name string, folder bool) bool {
	below, inside := name, true
	if f.folder != "." {
		below, inside = strings.CutPrefix(name, f.folder+"/")
	}
	if !inside || below == "." {
		return false
	}
	for i, c := range below {
		if c == '/' && f.excluded(below[:i], true) {
			return true
		}
	}
	return f.excluded(below, folder)
}

// excluded decides by the last pattern that matches.
func (f *filtered) excluded(below string, folder bool) bool {
	for _, r := range slices.Backward(f.rules) {
		if (folder || !r.folders) && r.match.MatchString(below) {
			return !r.keep
		}
	}
	return false
}

// seen is nil for what is not left out.
func (f *filtered) seen(op, name string) error {
	if !fs.ValidPath(name) {
		return pathError(op, name, fs.ErrInvalid)
	}
	if f.ignored(name, false) {
		return pathError(op, name, missing{})
	}
	if f.ignored(name, true) {
		// Only as a folder: so it matters what it is.
		if about, err := fs.Lstat(f.files, name); err == nil && about.IsDir() {
			return pathError(op, name, missing{})
		}
	}
	return nil
}

// Open implements fs.FS.
func (f *filtered) Open(name string) (fs.File, error) {
	if err := f.seen("open", name); err != nil {
		return nil, err
	}
	file, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err != nil || !about.IsDir() {
		return file, err
	}
	_ = file.Close()
	entries, err := f.ReadDir(name)
	return &overlaidFolder{openFolder{entries: entries}, about}, err
}

// ReadFile implements fs.ReadFileFS.
func (f *filtered) ReadFile(name string) ([]byte, error) {
	if err := f.seen("read", name); err != nil {
		return nil, err
	}
	return fs.ReadFile(f.files, name)
}

// Stat implements fs.StatFS.
func (f *filtered) Stat(name string) (fs.FileInfo, error) {
	if err := f.seen("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(f.files, name)
}

// ReadDir implements fs.ReadDirFS. The entries are sorted by name.
func (f *filtered) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.seen("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.files, name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return f.ignored(path.Join(name, e.Name()), e.IsDir()) }), nil
}
