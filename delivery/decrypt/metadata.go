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
	group
	KeyGroups []group `json:"key_groups"`

	LastModified string `json:"lastmodified"`
	MAC          string `json:"mac"`
	// In formats that only have texts these are texts.
	MACOnlyEncrypted any `json:"mac_only_encrypted"`
	ShamirThreshold  any `json:"shamir_threshold"`

	UnencryptedSuffix       string `json:"unencrypted_suffix"`
	EncryptedSuffix         string `json:"encrypted_suffix"`
	UnencryptedRegex        string `json:"unencrypted_regex"`
	EncryptedRegex          string `json:"encrypted_regex"`
	UnencryptedCommentRegex string `json:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `json:"encrypted_comment_regex"`
}

// group is a list of keys of which any one is enough. A file has one group for its data key, or several, each for a part of
// it by Shamir's secret sharing.
type group struct {
	Age []ageRecipient `json:"age"`
	PGP []pgpRecipient `json:"pgp"`
	// others are the kinds of keys of services it has.
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

// recipients are the keys of the group, for people.
func (g *group) recipients() string {
	var all []string
	for _, r := range g.Age {
		all = append(all, fmt.Sprintf("age %.100q", r.Recipient))
	}
	for _, r := range g.PGP {
		all = append(all, fmt.Sprintf("OpenPGP %.100q", r.Fingerprint))
	}
	for _, service := range g.others {
		all = append(all, service+" (which is not supported)")
	}
	if len(all) == 0 {
		return "no key"
	}
	return strings.Join(all, ", ")
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
	m.others = servicesIn(held)
	if groups, ok := held["key_groups"].([]any); ok {
		for i, g := range groups {
			m.KeyGroups[i].others = servicesIn(g)
		}
	}
	return m
}

func servicesIn(group any) []string {
	var found []string
	held, _ := group.(map[string]any)
	for _, service := range services {
		if list, ok := held[service].([]any); ok && len(list) > 0 {
			found = append(found, service)
		}
	}
	return found
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

// check refuses what is too much.
func (m *metadata) check() error {
	groups := m.groups()
	if len(groups) > maxGroups {
		return fmt.Errorf("has more than %d key groups: %w", maxGroups, ErrKeys)
	}
	var age, pgp int
	for i := range groups {
		age, pgp = age+len(groups[i].Age), pgp+len(groups[i].PGP)
	}
	if age > maxRecipients || pgp > maxRecipients {
		return fmt.Errorf("is encrypted for more than %d keys of a kind: %w", maxRecipients, ErrKeys)
	}
	return nil
}

// groups are those that hold the data key or its parts, at least one. As for SOPS, keys outside of groups go first.
func (m *metadata) groups() []group {
	if len(m.KeyGroups) == 0 || len(m.Age)+len(m.PGP)+len(m.others) > 0 {
		return []group{m.group}
	}
	return m.KeyGroups
}

// threshold is how many of several groups it takes; SOPS always writes it, and none is all of them.
func (m *metadata) threshold(groups int) (int, error) {
	if m.ShamirThreshold == nil {
		return groups, nil
	}
	n, err := strconv.Atoi(fmt.Sprint(m.ShamirThreshold))
	if err != nil || n < 2 || n > groups {
		return 0, fmt.Errorf("its shamir_threshold is not from 2 to %d, the number of its key groups: %w", groups, ErrDamaged)
	}
	return n, nil
}

func (m *metadata) macOnlyEncrypted() bool { return fmt.Sprint(m.MACOnlyEncrypted) == "true" }

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
