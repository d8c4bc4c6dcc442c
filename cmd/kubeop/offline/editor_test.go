package offline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// editor speaks with a yaml-language-server as an editor does, in the Language Server Protocol.
type editor struct {
	t        *testing.T
	to       io.Writer
	settings json.RawMessage
	received chan message
	last     int
}

// message is a request, an answer or a notification.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      *int            `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// openEditor starts the server in a repository, with the settings that kubeop schema --install wrote.
func openEditor(t *testing.T, root string) *editor {
	t.Helper()
	program := os.Getenv("KUBEOP_YAML_LANGUAGE_SERVER")
	if program == "" {
		t.Skip("KUBEOP_YAML_LANGUAGE_SERVER names no yaml-language-server; make editor installs one and runs this test")
	}
	settings, err := os.ReadFile(filepath.Join(root, ".vscode", "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--stdio")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	e := &editor{t: t, received: make(chan message, 100)}
	var byKey map[string]json.RawMessage
	if err := json.Unmarshal(settings, &byKey); err != nil {
		t.Fatal(err)
	}
	e.settings = json.RawMessage(fmt.Sprintf(`{"schemas": %s, "validate": true, "completion": true, "hover": true, "schemaStore": {"enable": false}}`, byKey["yaml.schemas"]))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	e.to = in
	go e.read(bufio.NewReader(out))
	folder := map[string]any{"uri": "file://" + root, "name": "acme"}
	e.ask("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + root, "rootPath": root, "workspaceFolders": []any{folder},
		"capabilities": map[string]any{"workspace": map[string]any{"configuration": true, "workspaceFolders": true}, "textDocument": map[string]any{"publishDiagnostics": map[string]any{}}},
	})
	e.notify("initialized", map[string]any{})
	return e
}

// read reads what the server sends, and answers its questions for settings.
func (e *editor) read(from *bufio.Reader) {
	defer close(e.received)
	for {
		header, err := textproto.NewReader(from).ReadMIMEHeader()
		if err != nil {
			return
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(from, text); err != nil {
			return
		}
		var m message
		if json.Unmarshal(text, &m) != nil {
			return
		}
		if m.Method == "" || m.ID == nil {
			e.received <- m
			continue
		}
		answer := json.RawMessage("null")
		if m.Method == "workspace/configuration" {
			var asked struct{ Items []struct{ Section string } }
			if json.Unmarshal(m.Params, &asked) != nil {
				return
			}
			all := []json.RawMessage{}
			for _, item := range asked.Items {
				if item.Section == "yaml" {
					all = append(all, e.settings)
				} else {
					all = append(all, json.RawMessage("{}"))
				}
			}
			answer, _ = json.Marshal(all)
		}
		e.send(message{ID: m.ID, Result: answer})
	}
}

func (e *editor) send(m message) {
	m.Version = "2.0"
	text, err := json.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(e.to, "Content-Length: %d\r\n\r\n%s", len(text), text)
	}
	if err != nil {
		e.t.Error(err)
	}
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		e.t.Fatal(err)
	}
	e.send(message{Method: method, Params: text})
}

// ask sends a request and returns the answer as text.
func (e *editor) ask(method string, params any) string {
	e.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		e.t.Fatal(err)
	}
	e.last++
	id := e.last
	e.send(message{ID: &id, Method: method, Params: text})
	return e.await(func(m message) (string, bool) { return string(m.Result), m.Method == "" && m.ID != nil && *m.ID == id })
}

// await returns what a message says that is the wanted one.
func (e *editor) await(wanted func(message) (string, bool)) string {
	e.t.Helper()
	end := time.After(time.Minute)
	for {
		select {
		case m, open := <-e.received:
			if !open {
				e.t.Fatal("the server has ended")
			}
			if text, is := wanted(m); is {
				return text
			}
		case <-end:
			e.t.Fatal("no answer of the server within a minute")
		}
	}
}

// open opens a file with a text, and returns what the editor underlines: lines and messages.
func (e *editor) open(file, text string) string {
	e.t.Helper()
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": "file://" + file, "languageId": "yaml", "version": 1, "text": text}})
	return e.await(func(m message) (string, bool) {
		var found struct {
			URI         string
			Diagnostics []struct {
				Message string
				Range   struct{ Start struct{ Line, Character int } }
			}
		}
		if m.Method != "textDocument/publishDiagnostics" || json.Unmarshal(m.Params, &found) != nil || found.URI != "file://"+file {
			return "", false
		}
		lines := []string{}
		for _, d := range found.Diagnostics {
			lines = append(lines, fmt.Sprintf("%d:%d %s", d.Range.Start.Line+1, d.Range.Start.Character+1, d.Message))
		}
		return strings.Join(lines, "\n"), true
	})
}

// at asks about a position in a file.
func (e *editor) at(method, file string, line, column int) string {
	e.t.Helper()
	return e.ask(method, map[string]any{"textDocument": map[string]any{"uri": "file://" + file}, "position": map[string]any{"line": line - 1, "character": column - 1}})
}

// TestAnEditorKnowsTheFiles: with the schemas of kubeop schema --install, an editor underlines what the operator refuses, completes fields and
// explains them.
func TestAnEditorKnowsTheFiles(t *testing.T) {
	root := write(t, repository(nil))
	t.Chdir(root)
	if _, err := do(t, Schema, "--install"); err != nil {
		t.Fatal(err)
	}
	e := openEditor(t, root)
	file := filepath.Join(root, "projects/shop/apps/web/app.yaml")
	if found := e.open(file, app); found != "" {
		t.Errorf("a valid file has problems:\n%s", found)
	}
	const wrong = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec:\n  type: Image\n  image:\n    reference: a:1\n    replicas: two\n    typo: 1\n"
	api := filepath.Join(root, "projects/shop/apps/api/app.yaml")
	found := e.open(api, wrong)
	for _, want := range []string{"8:15 ", "9:5 ", "typo"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not in the problems of a wrong file:\n%s", want, found)
		}
	}
	if hover := e.at("textDocument/hover", file, 6, 12); !strings.Contains(hover, "Reference") && !strings.Contains(hover, "image") {
		t.Errorf("the field reference is explained as %s", hover)
	}
	begun := filepath.Join(root, "projects/shop/apps/new/app.yaml")
	e.open(begun, "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: new}\nspec:\n  type: Image\n  image:\n    re\n")
	offered := e.at("textDocument/completion", begun, 7, 7)
	for _, want := range []string{`"reference"`, `"replicas"`, `"resources"`} {
		if !strings.Contains(offered, want) {
			t.Errorf("%s is not offered: %.600s", want, offered)
		}
	}
	if offered := e.at("textDocument/completion", begun, 5, 9); !strings.Contains(offered, `"Helm"`) || !strings.Contains(offered, `"Raw"`) {
		t.Errorf("the types of apps are not offered: %.600s", offered)
	}
	project := filepath.Join(root, "projects/shop/project.yaml")
	if found := e.open(project, "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec: {quotas: {pods: 1}}\n"); !strings.Contains(found, "quotas") {
		t.Errorf("a wrong project.yaml has the problems %q", found)
	}
}
