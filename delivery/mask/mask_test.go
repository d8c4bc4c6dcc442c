package mask

import "testing"

func TestMaskHidesEachFormOfASecret(t *testing.T) {
	tests := map[string]struct {
		values     []string
		text, want string
	}{
		"nothing to hide":                      {nil, "a text", "a text"},
		"not in the text":                      {[]string{"hunter22"}, "a text", "a text"},
		"twice":                                {[]string{"hunter22"}, "hunter22 is not hunter22!", "*** is not ***!"},
		"too short":                            {[]string{"abc"}, "abc", "abc"},
		"as base64":                            {[]string{"hunter22"}, "data: aHVudGVyMjI=", "data: ***"},
		"quoted by Go":                         {[]string{`p"ss<word`}, `Invalid value: "p\"ss<word"`, `Invalid value: "***"`},
		"quoted as JSON":                       {[]string{`p"ss<word`}, `"p\"ss\u003cword"`, `"***"`},
		"the beginning of a longer one":        {[]string{"admin", "admin-1234-xyz"}, "no admin-1234-xyz here", "no *** here"},
		"the end of a longer one":              {[]string{"1234-xyz", "admin-1234-xyz"}, "no admin-1234-xyz here", "no *** here"},
		"one that overlaps the next":           {[]string{"abcdef", "efghij"}, "<abcdefghij>", "<***>"},
		"one that overlaps itself":             {[]string{"abab"}, "<ababab>", "<***>"},
		"one beside another":                   {[]string{"abcd", "efgh"}, "abcdefgh", "***"},
		"words between that are no one's":      {[]string{"abcd", "efgh"}, "abcd or efgh", "*** or ***"},
		"a text of more bytes than characters": {[]string{"pässword"}, "ä pässword ä", "ä *** ä"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.values)(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if again := Of(tc.values)(tc.want); again != tc.want {
				t.Errorf("masked twice it is %q, want %q", again, tc.want)
			}
		})
	}
}
