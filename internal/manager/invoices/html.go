package invoices

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

// policy is the Content-Security-Policy of the page. It allows only the style of the page itself.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var layout = template.Must(template.New("invoice").Parse(pageText))

// asHTML writes a page to be printed, which needs neither scripts nor the internet.
func asHTML(is *Invoice) ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, map[string]any{"Invoice": is, "Style": template.CSS(style)})
	return out.Bytes(), err
}
