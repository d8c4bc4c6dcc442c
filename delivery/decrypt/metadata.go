package decrypt

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// metadata is what SOPS writes beside the values. The fields of services are left out on purpose; others only tells which
// there are.
type metadata struct {
	Age          []ageRecipient `json:"age"`
	PGP          []pgpRecipient `json:"pgp"`
	LastModified string         `json:"lastmodified"`
	MAC          string         `json:"mac"`
	// In formats that only have texts these are texts.
	MACOnlyEncrypted any `json:"mac_only_encrypted"`
	ShamirThreshold  any `json:"shamir_threshold"`

	KeyGroups []any `json:"key_groups"`

	UnencryptedSuffix       string `json:"unencrypted_suffix"`
	EncryptedSuffix         string `json:"encrypted_suffix"`
	UnencryptedRegex        string `json:"unencrypted_regex"`
	EncryptedRegex          string `json:"encrypted_regex"`
	UnencryptedCommentRegex string `json:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `json:"encrypted_comment_regex"`

	others []string
}

type ageRecipient struct {
	Recipient string `json:"recipient"`
	Enc       string `json:"enc"`
}

type pgpRecipient struct {
	Fingerprint string `json:"fp"`
	Enc         string `json:"enc"`
}

// services are the kinds of keys that are not used.
var services = []string{"kms", "gcp_kms", "azure_kv", "hc_vault", "hckms"}

// readMetadata reads the value of the key sops; nil when SOPS did not write it.
func readMetadata(value any) *metadata {
	data, err := json.Marshal(unordered(value))
	if err != nil {
		return nil
	}
	m := &metadata{}
	if err := json.Unmarshal(data, m); err != nil || m.MAC == "" {
		return nil
	}
	held, _ := unordered(value).(map[string]any)
	for _, service := range services {
		if list, ok := held[service].([]any); ok && len(list) > 0 {
			m.others = append(m.others, service)
		}
	}
	return m
}

// unordered turns what was read into what encoding/json writes.
func unordered(value any) any {
	switch v := value.(type) {
	case mapping:
		out := make(map[string]any, len(v))
		for _, f := range v {
			out[f.name] = unordered(f.value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = unordered(v[i])
		}
		return out
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return value
}

// nested is a field of a list of mappings in a format that has neither.
var nested = regexp.MustCompile(`^([a-z_]+?)__list_(\d+)__map_([a-z_]+)$`)

// unflatten is the metadata of a format that only has texts.
func unflatten(fields mapping) mapping {
	plain, lists := mapping{}, map[string][]any{}
	for _, f := range fields {
		m := nested.FindStringSubmatch(f.name)
		if m == nil {
			plain = append(plain, f)
			continue
		}
		index, err := strconv.Atoi(m[2])
		if err != nil || index > maxRecipients {
			index = maxRecipients // which check refuses
		}
		for len(lists[m[1]]) <= index {
			lists[m[1]] = append(lists[m[1]], mapping{})
		}
		lists[m[1]][index] = append(lists[m[1]][index].(mapping), field{m[3], f.value})
	}
	for name, list := range lists {
		plain = append(plain, field{name, list})
	}
	return plain
}

// check refuses what is not supported and what is too much.
func (m *metadata) check() error {
	threshold := fmt.Sprint(m.ShamirThreshold)
	switch {
	case len(m.KeyGroups) > 0 || m.ShamirThreshold != nil && threshold != "0" && threshold != "1":
		return fmt.Errorf("key groups and Shamir's secret sharing are not supported; encrypt it for any one of its keys: %w", ErrKeys)
	case len(m.Age) > maxRecipients || len(m.PGP) > maxRecipients:
		return fmt.Errorf("is encrypted for more than %d keys of a kind: %w", maxRecipients, ErrKeys)
	}
	return nil
}

func (m *metadata) macOnlyEncrypted() bool { return fmt.Sprint(m.MACOnlyEncrypted) == "true" }

// recipients are the keys that a file is encrypted for, for people.
func (m *metadata) recipients() []string {
	var all []string
	for _, r := range m.Age {
		all = append(all, fmt.Sprintf("age %.100q", r.Recipient))
	}
	for _, r := range m.PGP {
		all = append(all, fmt.Sprintf("OpenPGP %.100q", r.Fingerprint))
	}
	for _, service := range m.others {
		all = append(all, service+" (which is not supported)")
	}
	if len(all) == 0 {
		return []string{"no key"}
	}
	return all
}

// defaultSuffix is that of keys whose values are not encrypted when a file has no rule of its own.
const defaultSuffix = "_unencrypted"

// rule says which values are encrypted, by the keys on the way to them: those with a key that fits, or those without. Each key
// is judged once, however many values are below it: a file decides how long both are.
type rule struct {
	fits     func(key string) bool
	encrypts bool
}

func (m *metadata) rule() (rule, error) {
	if m.UnencryptedCommentRegex != "" || m.EncryptedCommentRegex != "" {
		return rule{}, fmt.Errorf("comments that say what is encrypted are not supported; use encrypted_regex: %w", ErrDamaged)
	}
	var rules []rule
	suffix := func(given string, encrypts bool) {
		if given != "" {
			rules = append(rules, rule{func(key string) bool { return strings.HasSuffix(key, given) }, encrypts})
		}
	}
	suffix(m.EncryptedSuffix, true)
	suffix(m.UnencryptedSuffix, false)
	for _, expression := range []struct {
		name, text string
		encrypts   bool
	}{{"encrypted_regex", m.EncryptedRegex, true}, {"unencrypted_regex", m.UnencryptedRegex, false}} {
		if expression.text == "" {
			continue
		}
		if len(expression.text) > maxRegex {
			return rule{}, fmt.Errorf("its %s has more than %d bytes: %w", expression.name, maxRegex, ErrDamaged)
		}
		compiled, err := regexp.Compile(expression.text)
		if err != nil {
			return rule{}, fmt.Errorf("its %s is none: %w", expression.name, ErrDamaged)
		}
		rules = append(rules, rule{compiled.MatchString, expression.encrypts})
	}
	switch len(rules) {
	case 0:
		suffix(defaultSuffix, false)
	case 1:
	default:
		return rule{}, fmt.Errorf("has more than one rule of what is encrypted: %w", ErrDamaged)
	}
	return rules[0], nil
}
