package docs

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// asksForAnAct finds an imperative at the beginning of a clause of a message. Verbs that are as often nouns are taken with what follows.
	asksForAnAct = regexp.MustCompile(`(?:^|[:;.] |, or |, and (?:then )?| or )(?:[Ee]ither |[Ff]irst |[Tt]hen )?(?:` +
		`(?i:add|allow|annotate|ask|check|choose|confirm|correct|create|declare|delete|find out|give|grant|hand|install|keep|leave|make|merge|move|patch|` +
		`push|raise|remove|rename|renew|replace|restart|restore|revert|set|split|take|use|write)` +
		`|(?i:build|commit|free|label|lower|name|put|sign) (?:it|its|some|them|the|this|one|a|an|with|those|what))\b`)
	// saysWhoAndHow finds what a message that asks for an act has to have: a sentence of delivery/command, which names who may act and the command;
	// an administrator, with the setting or the command; or what is to be changed in Git, which everybody may who may push: a file, or a field.
	saysWhoAndHow = regexp.MustCompile(`\bcommand\.[A-Z]|\b[Ww]rite(?:Keys)?\(|\bAskPlatform\b|an administrator of the cluster|(?i:an owner|a maintainer) of the|` +
		`\b(?:app|project|tenant|kubeop|kustomization|Chart)\.yaml\b|\.helmignore|\b(?:spec|metadata|status|stringData)\.[a-z]|\b(?:in|out of) Git\b|\b(?:commit|push) (?:a|it|its|the)\b`)
)

// answeredElsewhere are files and folders whose messages say it in another way.
var answeredElsewhere = map[string]string{
	"gitops/check/":                    "the problem of a file is printed with the file, line and column that are to be changed",
	"gitops/document/":                 "as gitops/check",
	"gitops/tree/":                     "as gitops/check",
	"delivery/freeze/":                 "a Fault names the field, and gitops/check the file and line",
	"delivery/render/":                 "the error is printed with the file and line, or the field of spec in app.yaml, that is to be changed",
	"gitops/edit/":                     "answers the person who edits the file",
	"gitops/commit/":                   "answers the person who edits the file",
	"gitops/rollback/":                 "answers the person who brings an app back",
	"gitops/host/errors.go":            "the table says what a token needs; explain adds who makes one, and NameSecret the command",
	"delivery/podsecurity/judge.go":    "each text ends with the field, and stands before what otherLevel says",
	"delivery/fetch/transport/auth.go": "AuthFromSecret adds who may write the Secret, and how",
	"delivery/fetch/transport/http.go": "Auth.NameSecret adds who may write the Secret, and how",
	"internal/store/":                  "statements of SQL, which ask the database, and what the commands of the manager say to the administrator who runs them",
	"internal/testenv/":                "for those who run the tests",
	"internal/fence/":                  "names an act of the operator, and asks for none",
	"internal/config/":                 "printed when the operator starts, by whose manifest the variables are set",
}

// TestEveryMessageThatAsksForAnActSaysWhoMayDoItAndHow reads the texts in the sources of all that writes to a status, an event or an answer.
func TestEveryMessageThatAsksForAnActSaysWhoMayDoItAndHow(t *testing.T) {
	used, asked := map[string]bool{}, 0
	for _, layer := range []string{"controllers", "delivery", "gitops", "cmd/operator", "internal"} {
		err := fs.WalkDir(os.DirFS(".."), layer, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			source, err := os.ReadFile("../" + name)
			if err != nil {
				return err
			}
			found, bad := unanswered(t, name, source)
			asked += found
			for place := range answeredElsewhere {
				if strings.HasPrefix(name, place) && len(bad) > 0 {
					used[place], bad = true, nil
				}
			}
			for _, message := range bad {
				t.Error(message)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for place := range answeredElsewhere {
		if !used[place] {
			t.Errorf("%s needs no exception any more", place)
		}
	}
	if asked < 200 {
		t.Errorf("only %d messages that ask for an act were found", asked)
	}
}

// unanswered returns how many messages in a source ask for an act, and those that do not say who may do it and how.
func unanswered(t *testing.T, name string, source []byte) (asked int, bad []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var visit func(ast.Node, ast.Node) bool
	visit = func(node, within ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.CallExpr:
			for _, argument := range node.Args {
				ast.Inspect(argument, func(n ast.Node) bool { return n == nil || visit(n, node) })
			}
			ast.Inspect(node.Fun, func(n ast.Node) bool { return n == nil || visit(n, within) })
			return false
		case *ast.FuncLit:
			ast.Inspect(node.Body, func(n ast.Node) bool { return n == nil || visit(n, nil) })
			return false
		case ast.Expr:
			text := textOf(node)
			if text == "" {
				return true
			}
			if asksForAnAct.MatchString(text) && strings.Count(text, " ") > 1 {
				asked++
				if within == nil {
					within = node
				}
				var all bytes.Buffer
				if err := printer.Fprint(&all, set, within); err != nil {
					t.Fatal(err)
				}
				if !saysWhoAndHow.MatchString(all.String()) {
					bad = append(bad, set.Position(node.Pos()).String()+": "+strconv.Quote(text))
				}
			}
			return false
		}
		return true
	}
	ast.Inspect(file, func(node ast.Node) bool { return node == nil || visit(node, nil) })
	return asked, bad
}

// textOf returns the text that an expression makes of literals, "" if there is none in it.
func textOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(of.Value); err == nil && of.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if of.Op == token.ADD {
			return textOf(of.X) + textOf(of.Y)
		}
	}
	return ""
}

func TestAMessageWithoutWhoOrHowIsFound(t *testing.T) {
	for body, bad := range map[string]int{
		`errors.New("there is no Secret x: create it")`:                                                         1,
		`errors.New("there is " + "no Secret x; ask" + " somebody")`:                                            1,
		`fmt.Errorf("%s is not known: check the name", name)`:                                                   1,
		`func() { step.Stop(command.Delete(a), func() error { return errors.New("it is there: delete it") }) }`: 1,
		`errors.New("there is no Secret x")`:                                                                    0,
		`fmt.Errorf("there is no Secret x: create it; %s", command.CreateSecret(a, b))`:                         0,
		`errors.New("the repository has no branch x: check ref in Git")`:                                        0,
		`errors.New("it is forbidden: ask an administrator of the cluster to allow it")`:                        0,
	} {
		asked, found := unanswered(t, "x.go", []byte("package x\n\nvar _ = "+body+"\n"))
		if len(found) != bad || asked < bad {
			t.Errorf("%s: of %d messages found %q, want %d", body, asked, found, bad)
		}
	}
}
