package gitserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Change is one changed reference, and the body of a webhook call. Before and After are zeros for a new and a removed
// reference, as in Git's own hooks.
type Change struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
	Before     string `json:"before"`
	After      string `json:"after"`
}

// SignatureHeader carries the hex HMAC-SHA256 of the body under the webhook's secret, after "sha256=".
const SignatureHeader = "X-Signature"

type webhook struct {
	client *http.Client
	log    *log.Logger
}

func newWebhook(logger *log.Logger) *webhook {
	return &webhook{client: &http.Client{Timeout: 10 * time.Second}, log: logger}
}

// tell calls the webhook once per change, in the background: a receiver that is slow or away never holds up a push.
func (h *webhook) notify(repository Repository, name string, changes []Change) {
	repository.Webhook = strings.ReplaceAll(repository.Webhook, "{name}", name)
	for _, change := range changes {
		change.Repository = name
		body, err := json.Marshal(change)
		if err != nil {
			h.log.Print(err)
			continue
		}
		go h.post(repository, body)
	}
}

func (h *webhook) post(repository Repository, body []byte) {
	request, err := http.NewRequest(http.MethodPost, repository.Webhook, bytes.NewReader(body))
	if err != nil {
		h.log.Printf("webhook: %v", err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(SignatureHeader, "sha256="+sign(repository.WebhookSecret, body))
	response, err := h.client.Do(request)
	if err != nil {
		h.log.Printf("webhook: %v", err)
		return
	}
	defer response.Body.Close()
	h.log.Printf("webhook %s answered %s", repository.Webhook, response.Status)
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// changes compares references before and after a push.
func changes(before, after map[string]string) []Change {
	none := strings.Repeat("0", 40)
	refs := maps.Clone(before)
	if refs == nil {
		refs = map[string]string{}
	}
	maps.Copy(refs, after)
	var list []Change
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		change := Change{Ref: ref, Before: none, After: none}
		if object, there := before[ref]; there {
			change.Before = object
		}
		if object, there := after[ref]; there {
			change.After = object
		}
		if change.Before != change.After {
			list = append(list, change)
		}
	}
	return list
}
