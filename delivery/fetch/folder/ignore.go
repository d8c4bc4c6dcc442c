package folder

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

const (
	// maxIgnoreLines limits the patterns of one app, because each is tried on each file.
	maxIgnoreLines = 100
	// maxIgnoreSteps limits the cost of matching patterns: each try counts the length of the path, multiplied by the number of the
	// pattern's stars plus one. A step takes up to 200 ns.
	maxIgnoreSteps = 100_000_000
)

// Ignore leaves out the files and folders below folder that patterns match, in the syntax of gitignore(5). Links are left out like files.
// Without patterns, it returns files itself. Use the result for one reading only.
//
// Errors: ErrInvalid for an invalid pattern, ErrTooLarge for more than 100 patterns. Reading returns ErrTooLarge after 100 million steps of
// matching.
func Ignore(files fs.FS, folder, patterns string) (fs.FS, error) {
	f := &filtered{files: files, folder: path.Clean(folder), known: map[tried]bool{}}
	for line := range strings.Lines(patterns) {
		rule, err := ignoreRule(strings.TrimRight(line, "\r\n"))
		if err != nil {
			return nil, err
		}
		if rule.match == nil {
			continue
		}
		if f.rules = append(f.rules, rule); len(f.rules) > maxIgnoreLines {
			return nil, failure.TooMany("the number of patterns in ignore", maxIgnoreLines)
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
	// keep: the pattern begins with "!". folders: the pattern ends with "/".
	keep, folders bool
	// stars is the number of stars in the line, plus one.
	stars int
}

// ignoreRule parses a line. It becomes a regular expression, whose running time is linear also for a hostile pattern.
func ignoreRule(line string) (rule, error) {
	var r rule
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, nil
	}
	pattern := line
	r.stars = strings.Count(line, "*") + 1
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
		return r, failure.New(failure.ErrInvalid, "the pattern %q of ignore cannot be read: write it in Git as in a .gitignore", few.Quote(line))
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

// classOf translates the set of characters with which pattern begins, and returns the set's length. A set without an end makes the pattern
// invalid.
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

// memberOf translates the class or the character with which text begins, inside a set.
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

// filtered is a file system without the ignored files.
type filtered struct {
	files  fs.FS
	folder string
	rules  []rule
	// known has the decisions about paths below the folder, and steps is their cost.
	known map[tried]bool
	steps int
}

// tried is a path, as a folder or as something else.
type tried struct {
	path   string
	folder bool
}

var (
	_ fs.ReadDirFS  = (*filtered)(nil)
	_ fs.ReadFileFS = (*filtered)(nil)
	_ fs.StatFS     = (*filtered)(nil)
)

// ignored reports whether a path is left out. A pattern cannot keep something in a folder that is left out, as in Git.
func (f *filtered) ignored(name string, folder bool) (bool, error) {
	below, inside := name, true
	if f.folder != "." {
		below, inside = strings.CutPrefix(name, f.folder+"/")
	}
	if !inside || below == "." {
		return false, nil
	}
	for i, c := range below {
		if c != '/' {
			continue
		}
		if out, err := f.excluded(tried{below[:i], true}); out || err != nil {
			return out, err
		}
	}
	return f.excluded(tried{below, folder})
}

// excluded decides by the last pattern that matches, once for each path.
func (f *filtered) excluded(of tried) (bool, error) {
	if out, known := f.known[of]; known {
		return out, nil
	}
	out := false
	for _, r := range slices.Backward(f.rules) {
		if r.folders && !of.folder {
			continue
		}
		if f.steps += len(of.path) * r.stars; f.steps > maxIgnoreSteps {
			return false, failure.New(failure.ErrTooLarge, "to match the patterns of ignore with all paths takes more than the limit of %d steps, which are the letters of each path for each star of each pattern: write fewer patterns in Git, or with fewer stars", maxIgnoreSteps)
		}
		if r.match.MatchString(of.path) {
			out = !r.keep
			break
		}
	}
	f.known[of] = out
	return out, nil
}

// seen returns an error for a path that is left out.
func (f *filtered) seen(op, name string) error {
	if !fs.ValidPath(name) {
		return PathError(op, name, fs.ErrInvalid)
	}
	asFile, err := f.ignored(name, false)
	if err != nil {
		return PathError(op, name, err)
	}
	if asFile {
		return PathError(op, name, ErrNotExist)
	}
	asFolder, err := f.ignored(name, true)
	if err != nil {
		return PathError(op, name, err)
	}
	if asFolder {
		// The patterns may match only folders, so it matters which of the two this is.
		if about, err := fs.Lstat(f.files, name); err == nil && about.IsDir() {
			return PathError(op, name, ErrNotExist)
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
	return OpenFolder(about, entries), err
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
	var left []fs.DirEntry
	for _, e := range entries {
		out, err := f.ignored(path.Join(name, e.Name()), e.IsDir())
		if err != nil {
			return nil, PathError("readdir", name, err)
		}
		if !out {
			left = append(left, e)
		}
	}
	return left, nil
}
