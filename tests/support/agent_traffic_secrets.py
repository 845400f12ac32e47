"""Examples of a coding agent's traffic: texts with secrets, and texts without secrets.

`TEXTS` and `LINES` list the words that the redaction must remove. It must not change the texts of `INNOCENT`. The
author wrote the examples from the rule in docs/how-to/tap.md, before reading the code.
"""

from __future__ import annotations

import base64
import json
from typing import Any

#: Passwords that a person chose. They look like ordinary words, so only the text around them marks them as secrets.
PASSWORD = "Winter24"
OTHER = "orchard7"
_KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
_PEM = f"-----BEGIN PRIVATE KEY-----\n{_KEY}\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SupZHDnoT\n-----END PRIVATE KEY-----\n"
_SSH = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
    "QyNTUxOQAAACBQ8yN0nDvhk1v7wQkS4dTqQf5b3YkQwRkq1Zr8cQ\n-----END OPENSSH PRIVATE KEY-----\n"
)
_ENCRYPTED = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,5D3F3A2B1C0D9E8F\n\n"
    "qk3vXn0hXfWm2PZl9oGJrYt4sAeCdB1uI7yHxVgKpQwRzLjNfTbMcSaDeUo8i6E5\n-----END RSA PRIVATE KEY-----\n"
)
_JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvZSJ9"
    ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


#: Name -> text that a tool printed, read or wrote to a file, and the words that must not remain in it.
TEXTS: dict[str, tuple[str, list[str]]] = {
    # shell commands
    "export": (f"export DB_PASSWORD='{PASSWORD}' && ./manage.py migrate", [PASSWORD]),
    "PGPASSWORD before psql": (f"PGPASSWORD={OTHER} psql -h db.internal -U app -c 'select 1'", [OTHER]),
    "mysql -p": (f"mysql -uroot -p{PASSWORD} shop -e 'show tables'", [PASSWORD]),
    "a conninfo string": (f'psql "host=db port=5432 user=app password={PASSWORD} dbname=shop"', [PASSWORD]),
    "curl with JSON": (
        f"""curl -s -X POST https://api.example.com/login -d '{{"user":"bob","password":"{PASSWORD}"}}'""",
        [PASSWORD],
    ),
    "curl with a form": (f"curl --data-urlencode 'passwd={PASSWORD}' https://example.com/login", [PASSWORD]),
    "a cookie of curl": (f"curl -b 'sid={OTHER}' https://example.com/me", [OTHER]),
    "a here string": (f"docker login -u bob --password-stdin <<< '{PASSWORD}'", [PASSWORD]),
    "echo into --password-stdin": (
        f"echo {PASSWORD} | helm registry login ghcr.io -u bob --password-stdin",
        [PASSWORD],
    ),
    "chpasswd": (f"echo 'deploy:{PASSWORD}' | sudo chpasswd", [PASSWORD]),
    "smbclient": (f"smbclient //nas/share -U 'bob%{PASSWORD}' -c ls", [PASSWORD]),
    "ssh-keygen -N": (f"ssh-keygen -t ed25519 -N '{PASSWORD}' -f ~/.ssh/deploy", [PASSWORD]),
    "gpg": (f"gpg --batch --passphrase '{PASSWORD}' -d backup.tar.gpg", [PASSWORD]),
    "7z": (f"7z x -p{PASSWORD} backup.7z -oout", [PASSWORD]),
    "keytool": (f"keytool -list -keystore app.jks -storepass {PASSWORD}", [PASSWORD]),
    "redis-cli": (f"redis-cli -h cache -a {OTHER} ping", [OTHER]),
    "expect": (f'spawn ssh root@host\nexpect "assword:"\nsend "{PASSWORD}\\r"\nexpect "# "', [PASSWORD]),
    "PowerShell": (
        f'$p = ConvertTo-SecureString "{PASSWORD}" -AsPlainText -Force\n$env:SMTP_PASS = "{OTHER}"',
        [PASSWORD, OTHER],
    ),
    "net user": (f"net user backup {PASSWORD} /add", [PASSWORD]),
    "gh secret set": (f'gh secret set DEPLOY_KEY --body "{PASSWORD}" --repo acme/shop', [PASSWORD]),
    "nmcli": (f"nmcli dev wifi connect 'Cafe Nord' password '{PASSWORD}'", [PASSWORD]),
    "vault kv put": (f"vault kv put secret/shop/db username=app password={PASSWORD}", [PASSWORD]),
    "htpasswd -b": (f"htpasswd -b -c /etc/nginx/users bob {PASSWORD}", [PASSWORD]),
    "openssl": (f"openssl rsa -in a.pem -passin pass:{PASSWORD} -out b.pem", [PASSWORD]),
    "the last line of base64": (base64.encodebytes(f"{'a plain word ' * 9}{OTHER}".encode()).decode(), ["b3JjaGFyZDc"]),
    # environments and settings
    "an environment": (f"HOME=/home/bob\nLANG=C.UTF-8\nREDIS_URL=redis://:{OTHER}@cache:6379/0\nSHLVL=1\n", [OTHER]),
    "a sentence in .env": ("# backups\nBACKUP_PASSPHRASE=correct horse battery staple\nDEBUG=0\n", ["battery staple"]),
    "a quoted .env with special characters": ('SECRET_KEY="dj$ango#4 x&(ab)"\nDEBUG=1\n', ["ango#4", "x&(ab)"]),
    "a block scalar": (f"database:\n  user: app\n  password: |\n    {PASSWORD}\n  pool: 5\n", [PASSWORD]),
    "a YAML name and its value": (f"env:\n  - name: DB_PASSWORD\n    value: {PASSWORD}\n", [PASSWORD]),
    "TOML": (f'[registries.acme]\nindex = "sparse+https://c.example"\ntoken = "{OTHER}"\n', [OTHER]),
    "my.cnf": (f"[client]\nuser = root\npassword = {PASSWORD}\n", [PASSWORD]),
    "Maven": (
        f"<server>\n  <id>nexus</id>\n  <username>ci</username>\n  <password>{PASSWORD}</password>\n</server>",
        [PASSWORD],
    ),
    "web.config": (f'<appSettings><add key="SmtpPassword" value="{PASSWORD}" /></appSettings>', [PASSWORD]),
    "Spring XML": (f'<property name="password">\n  <value>{PASSWORD}</value>\n</property>', [PASSWORD]),
    "properties": (f"spring.datasource.username=app\nspring.datasource.password={PASSWORD}\n", [PASSWORD]),
    "netrc": (f"machine api.heroku.com\n  login bob@example.com\n  password {OTHER}\n", [OTHER]),
    "npmrc": (
        f"//npm.acme.dev/:_authToken={OTHER}\n//old.acme.dev/:_password={_b64(PASSWORD)}\nalways-auth=true\n",
        [OTHER, _b64(PASSWORD)],
    ),
    "pip.conf": (f"[global]\nindex-url = https://ci:{PASSWORD}@pypi.acme.dev/simple\n", [PASSWORD]),
    "ADO connection string": (f"Server=tcp:db,1433;Database=shop;User ID=sa;Pwd={PASSWORD};Encrypt=True;", [PASSWORD]),
    "JDBC of Oracle": (f"url=jdbc:oracle:thin:scott/{OTHER}@//db:1521/XE", [OTHER]),
    "WireGuard": (
        "[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\nAddress = 10.0.0.2/32\n",
        ["yAnz5TF", "gJBgB3fBmk"],
    ),
    "wpa_supplicant": (f'network={{\n  ssid="Cafe Nord"\n  psk="{PASSWORD}"\n}}\n', [PASSWORD]),
    "a Wi-Fi QR code": (f"WIFI:T:WPA;S:Cafe Nord;P:{PASSWORD};;", [PASSWORD]),
    "a Gradle signing config": (f"signingConfigs {{ release {{ storePassword '{PASSWORD}' }} }}", [PASSWORD]),
    "Ansible": (f"web1 ansible_host=10.0.0.5 ansible_user=bob ansible_become_pass={PASSWORD}\n", [PASSWORD]),
    "a call in Python": (f'engine = connect(host="db", user="app", passwd="{PASSWORD}", port=3306)', [PASSWORD]),
    "a struct in Go": (f'cfg := Config{{\n\tUser:     "app",\n\tPassword: "{PASSWORD}",\n}}', [PASSWORD]),
    # kubernetes, terraform, docker
    "kubectl get secret -o yaml": (
        f"apiVersion: v1\ndata:\n  pw: {_b64(PASSWORD)}\n  user: YXBw\nkind: Secret\nmetadata:\n  name: db\n",
        [_b64(PASSWORD)],
    ),
    "kubectl describe pod": (
        f"    Environment:\n      DB_HOST:      db\n      DB_PASSWORD:  {PASSWORD}\n    Mounts:  <none>\n",
        [PASSWORD],
    ),
    "kubectl create secret": (
        f"kubectl create secret generic db --from-literal=dsn={OTHER} --from-literal=pw={PASSWORD}",
        [OTHER, PASSWORD],
    ),
    "helm --set": (
        f"helm upgrade db bitnami/postgresql --set auth.postgresPassword={PASSWORD},auth.database=shop",
        [PASSWORD],
    ),
    "terraform plan": (f'  ~ master_password = "{PASSWORD}" -> "{OTHER}"\n    name = "shop"', [PASSWORD, OTHER]),
    "terraform state": (
        json.dumps({"outputs": {"db_password": {"value": PASSWORD, "type": "string", "sensitive": True}}}, indent=2),
        [PASSWORD],
    ),
    "a terraform variable": (
        f'variable "admin_password" {{\n  type    = string\n  default = "{PASSWORD}"\n}}\n',
        [PASSWORD],
    ),
    "docker inspect": (
        json.dumps([{"Config": {"Env": ["PATH=/usr/bin", f"POSTGRES_PASSWORD={PASSWORD}"]}}], indent=4),
        [PASSWORD],
    ),
    # clouds
    "aws secretsmanager": (
        json.dumps({"Name": "prod/db", "SecretString": json.dumps({"username": "app", "pw": PASSWORD})}, indent=4),
        [PASSWORD],
    ),
    "aws ssm get-parameter": (
        json.dumps({"Parameter": {"Name": "/prod/db/password", "Type": "SecureString", "Value": PASSWORD}}, indent=4),
        [PASSWORD],
    ),
    "aws ssm put-parameter": (
        f"aws ssm put-parameter --name /prod/db/password --type SecureString --value '{PASSWORD}'",
        [PASSWORD],
    ),
    "aws ssm as a SecureString alone": (
        f"aws ssm put-parameter --name /prod/smtp --value '{PASSWORD}' --type SecureString",
        [PASSWORD],
    ),
    "az storage account keys": (
        json.dumps([{"keyName": "key1", "permissions": "FULL", "value": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1=="}]),
        ["Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1"],
    ),
    "az login": (f"az login --service-principal -u 1f0e -p {PASSWORD} --tenant acme", [PASSWORD]),
    "a SAS URL": (
        "azcopy cp a.bin 'https://acme.blob.core.windows.net/c/a.bin?sv=2022-11-02&sr=b&sig=Z%2FRHIX5Xcg0Mq2%3D&se=2026'",
        ["RHIX5Xcg0Mq2"],
    ),
    "gcloud sql": (f"gcloud sql users set-password root --instance=shop --password={PASSWORD}", [PASSWORD]),
    # databases
    "a table of psql": (
        f" id |   email   |  password  \n----+-----------+------------\n  1 | bob       | {PASSWORD}\n(1 row)\n",
        [PASSWORD],
    ),
    "expanded output of psql": (f"-[ RECORD 1 ]------\nid       | 1\npassword | {PASSWORD}\n", [PASSWORD]),
    "ALTER USER": (f"ALTER ROLE app WITH LOGIN PASSWORD '{PASSWORD}';", [PASSWORD]),
    "IDENTIFIED BY": (f"CREATE USER 'app'@'%' IDENTIFIED BY '{PASSWORD}';", [PASSWORD]),
    "INSERT": (f"INSERT INTO users (name, password, age) VALUES ('bob', '{PASSWORD}', 41);", [PASSWORD]),
    # keys
    "an SSH key with line numbers": (
        "".join(f"{number:6}\t{line}\n" for number, line in enumerate(_SSH.splitlines(), 1)),
        ["b3BlbnNzaC1rZXktdjE", "QyNTUxOQAAACBQ8yN0"],
    ),
    "a key in a diff": ("".join(f"+{line}\n" for line in _PEM.splitlines()), [_KEY, "MzEfYyjiWA4R4"]),
    "an encrypted key": (_ENCRYPTED, ["qk3vXn0hXfWm2PZl"]),
    "a key in one line": ("KEY=" + json.dumps(_PEM), [_KEY, "MzEfYyjiWA4R4"]),
    "the end of a key": (
        "$ tail -2 key.pem\n" + "\n".join(_PEM.splitlines()[2:]),
        ["MzEfYyjiWA4R4", "NXp98C3SupZHDnoT"],
    ),
    # web
    "a callback of OAuth": (
        "GET /callback?code=4/0AX4XfWh-kq&state=af0ifjsldkj HTTP/1.1\nHost: localhost:8080\n",
        ["0AX4XfWh-kq"],
    ),
    "Set-Cookie": (f"< HTTP/2 200\n< set-cookie: sid={OTHER}; Path=/; HttpOnly\n< content-length: 2\n", [OTHER]),
    "a bearer token": (f"curl -H 'Authorization: Bearer {_JWT}' https://api.example.com", [_JWT[:30], _JWT[-20:]]),
    "basic authorization": (
        f"> Authorization: Basic {_b64('bob:' + PASSWORD)}\n> Accept: */*\n",
        [_b64("bob:" + PASSWORD)],
    ),
    "webhooks": (
        "SLACK=https://hooks.slack.com/services/" + "T0ABCD123/B0ABCD456/q1W2e3R4t5Y6u7I8o9P0aSdF\n"
        "DISCORD=https://discord.com/api/webhooks/" + "112233445566778899/ab_CD-efGH1jKl\n"
        "TEAMS=https://acme.webhook.office.com/webhookb2/1f0e2d3c-aaaa-bbbb-cccc-0123456789ab@1f0e2d3c-aaaa-bbbb-"
        "cccc-0123456789ab/IncomingWebhook/0123456789abcdef0123456789abcdef/1f0e2d3c-1111-2222-3333-0123456789ab\n",
        ["q1W2e3R4t5Y6", "ab_CD-efGH1jKl", "0123456789abcdef0123"],
    ),
    "git remote -v": (f"origin\thttps://oauth2:{OTHER}@gitlab.acme.dev/shop.git (fetch)\n", [OTHER]),
    # second factors
    "a TOTP seed in groups": ("TOTP secret: JBSW Y3DP EHPK 3PXP", ["EHPK", "3PXP"]),
    "recovery codes": (
        "Recovery codes (keep them safe):\n  1. a1b2c-d3e4f\n  2. 9z8y7-x6w5v\n",
        ["a1b2c-d3e4f", "9z8y7-x6w5v"],
    ),
    # other languages
    "German": (f"Das Passwort lautet {PASSWORD}. Kennwort: {OTHER}\nzugangscode = {PASSWORD}\n", [PASSWORD, OTHER]),
    "French": (f"Mot de passe : {PASSWORD}\nmot_de_passe={OTHER}\n", [PASSWORD, OTHER]),
    "Spanish": (f'contraseña: {PASSWORD}\n"contrasena": "{OTHER}"\n', [PASSWORD, OTHER]),
    # what a terminal shows
    "colours": (
        f"\x1b[1;34mpassword\x1b[0m\x1b[2m:\x1b[0m \x1b[32m{PASSWORD[:3]}\x1b[1m{PASSWORD[3:]}\x1b[0m\n",
        [PASSWORD[:3], PASSWORD[3:]],
    ),
    "CSV": (f"name,email,password\nbob,bob at example,{PASSWORD}\nann,ann at example,{OTHER}\n", [PASSWORD, OTHER]),
    "a table of Markdown": (f"| user | password |\n|------|----------|\n| bob | `{PASSWORD}` |\n", [PASSWORD]),
}

#: More texts of the same kinds.
TEXTS.update(
    {
        "gh auth login": ("gh auth login --with-token <<< orchard7", ["orchard7"]),
        "echo gcloud": ("echo -n 'Winter24' | gcloud secrets create smtp --data-file=-", ["Winter24"]),
        "printf kubectl": ("printf '%s' Winter24 | vault kv put secret/x password=-", ["Winter24"]),
        "security": ("security add-generic-password -a bob -s smtp -w 'Winter24'", ["Winter24"]),
        "ipmitool": ("ipmitool -I lanplus -H 10.0.0.9 -U admin -P Winter24 power status", ["Winter24"]),
        "sqlplus": ("sqlplus -s system/orchard7@//db:1521/XE", ["orchard7"]),
        "psql env yaml": ("- name: SMTP_PASSWORD\n  description: mail\n  value: Winter24", ["Winter24"]),
        "html input": ('<input type="text" name="api_token" id="t1" value="Winter24">', ["Winter24"]),
        "Jenkins": ("<entry><string>password</string><string>Winter24</string></entry>", ["Winter24"]),
        "plist": ("<key>password</key>\n<string>Winter24</string>", ["Winter24"]),
        "diff from to": ("-  password: Winter24\n+  password: orchard7", ["Winter24", "orchard7"]),
        "diff arrow": ("db_password: Winter24 => orchard7", ["Winter24", "orchard7"]),
        "openstack": (
            "+----------+-----------+\n| Field    | Value     |\n"
            "+----------+-----------+\n| name     | bob       |\n| password | Winter24  |\n",
            ["Winter24"],
        ),
        "records of mysql": ("*** 1. row ***\n      id: 1\npassword: Winter24\n", ["Winter24"]),
        "COPY of pg_dump": (
            "COPY public.users (id, password, name) FROM stdin;\n1\tWinter24\tbob\n2\torchard7\tann\n\\.\n",
            ["Winter24", "orchard7"],
        ),
        "INSERT of two rows": (
            "insert into users(id, pw_hash, api_token) values (1, now(), 'Winter24'), "
            "(2, crypt('x', 'y'), 'orchard7');",
            ["Winter24", "orchard7"],
        ),
        "a redirect of OAuth": ("Location: https://app/cb?state=1&code=SplxlOBe_ZQQorchard7", ["orchard7"]),
        "Danish": ("adgangskode: Winter24", ["Winter24"]),
        "Italian": ("parola d'ordine: Winter24", ["Winter24"]),
        "Swedish": ("lösenord=Winter24", ["Winter24"]),
        "French, in a sentence": ("Le mot de passe est Winter24.", ["Winter24"]),
        "German, in capitals": ("ZUGANGSDATEN: Winter24", ["Winter24"]),
        "Polish": ("hasło: Winter24", ["Winter24"]),
        "Dutch": ("wachtwoord = 'Winter24'", ["Winter24"]),
        "Czech": ("heslo: Winter24", ["Winter24"]),
        "Romanian": ("parola=Winter24", ["Winter24"]),
        "app pw": ("app password: abcd efgh ijkl mnop", ["efgh", "mnop"]),
        "backup codes": ("Your backup codes:\n- 1234-5678\n- 8765-4321\n", ["1234-5678", "8765-4321"]),
        "seed phrase": ("seed_phrase = abandon ability able about", ["ability", "about"]),
        "ruby": ("  password 'Winter24'\n  user 'x'", ["Winter24"]),
        "gradle kts": ('keyPassword = "Winter24"', ["Winter24"]),
        "php": ("define('DB_PASSWORD', 'Winter24');", ["Winter24"]),
        "an array of PHP": ("'password' => env('DB_PASSWORD', 'Winter24'),", ["Winter24"]),
        "shell default": ("${DB_PASSWORD:-Winter24}", ["Winter24"]),
        "rust": ('let password: &str = "Winter24";', ["Winter24"]),
        "java": ('private static final String PASSWORD = "Winter24";', ["Winter24"]),
        "kotlin": ('val apiKey: String = "Winter24"', ["Winter24"]),
        "go": ('const dbPassword = "Winter24"', ["Winter24"]),
        "python default": ('os.getenv("DB_PASSWORD", "Winter24")', ["Winter24"]),
        "ts default": ('process.env.DB_PASSWORD || "Winter24"', ["Winter24"]),
        "js ??": ("const token = process.env.TOKEN ?? 'Winter24'", ["Winter24"]),
        "argparse": ('parser.add_argument("--password", default="Winter24")', ["Winter24"]),
        "click": ('@click.option("--db-password", default="Winter24", help="x")', ["Winter24"]),
        "pydantic": ('db_password: SecretStr = SecretStr("Winter24")', ["Winter24"]),
        "pydantic Field": ('password: str = Field(default="Winter24")', ["Winter24"]),
        "java ann": ('@Value("${db.password:Winter24}")', ["Winter24"]),
        "tfvars": ('db_password = "Winter24"', ["Winter24"]),
        "hcl map": ('environment = { "DB_PASSWORD" = "Winter24" }', ["Winter24"]),
        "docker build": ("docker build --build-arg NPM_TOKEN=orchard7 .", ["orchard7"]),
        "Dockerfile ENV": ("ENV DB_PASSWORD Winter24", ["Winter24"]),
        "systemd": ('Environment="API_TOKEN=Winter24"', ["Winter24"]),
        "fish": ("set -gx API_TOKEN Winter24", ["Winter24"]),
        "cmd": ("set API_TOKEN=Winter24", ["Winter24"]),
        "setx": ("setx API_TOKEN Winter24", ["Winter24"]),
        "csh": ("setenv API_TOKEN Winter24", ["Winter24"]),
        "heroku": ("heroku config:set SECRET_TOKEN=orchard7", ["orchard7"]),
        "git config": ("git config user.password Winter24", ["Winter24"]),
        "npm config": ("npm config set //registry/:_authToken Winter24", ["Winter24"]),
        "aws configure": ("aws configure set aws_secret_access_key orchard7", ["orchard7"]),
        "mysql prompt": ("Enter password: Winter24", ["Winter24"]),
        "ssh prompt": ("bob@host's password: Winter24", ["Winter24"]),
        "rails": ("User.create!(email: 'a', password: 'Winter24')", ["Winter24"]),
        "sql set": ("SET PASSWORD FOR 'bob'@'%' = PASSWORD('Winter24');", ["Winter24"]),
        "mongo": ('db.createUser({user: "bob", pwd: "Winter24", roles: []})', ["Winter24"]),
        "log": ("INFO login ok user=bob pass=Winter24 ip=1.2.3.4", ["Winter24"]),
        "json log": ('{"msg":"login","body":"{\\"password\\":\\"Winter24\\"}"}', ["Winter24"]),
        "multiline yaml folded": ("token: >-\n  Winter24\n", ["Winter24"]),
        "openvpn": ("<auth-user-pass>\nbob\nWinter24\n</auth-user-pass>", ["Winter24"]),
        "said before the name": ("use Winter24 as the password", ["Winter24"]),
        "said with for": ("the password for bob is Winter24", ["Winter24"]),
        "login/pw": ("login: bob / password: Winter24", ["Winter24"]),
        "a pair of credentials": ("credentials: bob:Winter24", ["Winter24"]),
        "changed": ("I changed the password to Winter24.", ["Winter24"]),
        "German, in a sentence": ("Das Kennwort für bob lautet Winter24", ["Winter24"]),
        "f(password)": ("if password == 'Winter24':", ["Winter24"]),
        "assert": ("assert check_password('Winter24')", ["Winter24"]),
        "auth=": ("requests.get(u, auth=('bob', 'Winter24'))", ["Winter24"]),
        "a line after bearer": ("password_file = /x\ntoken_type: bearer\npassword: Winter24", ["Winter24"]),
    }
)


def _stream(*deltas: dict[str, Any]) -> bytes:
    """Return the ``stream_event`` lines of a content block with these deltas."""
    events = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    lines = [
        {"type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": None, "uuid": "u"}
        for event in events
    ]
    return b"\n".join(json.dumps(line).encode() for line in lines)


def _assistant(*content: dict[str, Any]) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": {}}
    return json.dumps({"type": "assistant", "message": message, "session_id": "s"}).encode()


#: Name -> lines of the protocol whose secret can only be found by its position in the message, and the secret's words.
LINES: dict[str, tuple[bytes, list[str]]] = {
    "a text in deltas": (
        _stream(*({"type": "text_delta", "text": part} for part in ("The pass", "word is Win", "ter24."))),
        ["Win", "ter24"],
    ),
    "an input in deltas": (
        _stream(
            *(
                {"type": "input_json_delta", "partial_json": part}
                for part in ('{"command":"PGPASS', "WORD=Win", 'ter24"}')
            )
        ),
        ["Win", "ter24"],
    ),
    "thinking": (
        _assistant(
            {"type": "thinking", "thinking": f"The user gave the password {PASSWORD}, so log in.", "signature": "x"}
        ),
        [PASSWORD],
    ),
    "a list of arguments": (
        _assistant(
            {"type": "tool_use", "id": "t", "name": "run", "input": {"argv": ["mysql", "--password", PASSWORD]}}
        ),
        [PASSWORD],
    ),
    "a name and a value in an input": (
        _assistant({"type": "tool_use", "id": "t", "name": "fill", "input": {"field": "Password", "text": PASSWORD}}),
        [PASSWORD],
    ),
    "an edit": (
        _assistant(
            {
                "type": "tool_use",
                "id": "t",
                "name": "Edit",
                "input": {"file_path": ".env", "old_string": f"DB_PASS={PASSWORD}", "new_string": f"DB_PASS={OTHER}"},
            }
        ),
        [PASSWORD, OTHER],
    ),
    "the result of a command": (
        json.dumps(
            {
                "type": "user",
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
                "session_id": "s",
                "tool_use_result": {"stdout": f"password: {PASSWORD}", "stderr": "", "interrupted": False},
            }
        ).encode(),
        [PASSWORD],
    ),
}

#: Texts without a secret. The redaction must not change them.
INNOCENT: list[str] = [
    # code about passwords
    "password = getpass()",
    "password = os.environ['DB_PASSWORD']",
    "const token = await getToken(user.id);",
    "if not verify_password(plain, user.password_hash):\n    raise HTTPException(401)",
    "def reset_password(self, new_password: str) -> None:",
    "password: str = Field(min_length=8)",
    'parser.add_argument("--password", help="password of the user")',
    "token_count: 512",
    "max_tokens=4096, temperature=0.7",
    '"input_tokens": 1523, "output_tokens": 87',
    "class PasswordResetTokenGenerator:",
    "export const selectToken = (state) => state.auth.token;",
    "type Props = { password: string; onSubmit: () => void };",
    "func (c *Client) SetToken(token string) { c.token = token }",
    "let secret = Secret::new(rng.gen());",
    "user.password = hash_password(form.password.data)",
    'assert response.json()["access_token"] == token',
    "secrets.compare_digest(given, expected)",
    "SELECT id, password_hash FROM users WHERE email = $1;",
    "ALTER TABLE users ADD COLUMN password_hash text NOT NULL;",
    "private readonly passwordService: PasswordService,",
    "password_validators = [MinimumLengthValidator]",
    "import { hashPassword, comparePassword } from './auth/password';",
    'input type="password" name="password" autocomplete="current-password" required',
    '<label for="password">Password</label>',
    "tokens = tokenizer.encode(text, return_tensors='pt')",
    "key = lambda item: item.name",
    "sorted(items, key=itemgetter(1))",
    "for key, value in data.items():",
    "cache_key = f'{user_id}:{page}'",
    "primary_key=True, autoincrement=True",
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    "DB_PASSWORD=${DB_PASSWORD:?not set}",
    "API_KEY=<your-api-key>",
    'password: "{{ vault_db_password }}"',
    "  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password",
    "var.db_password",
    "password = var.master_password",
    "process.env.STRIPE_SECRET_KEY",
    'kwargs.pop("password", None)',
    "@pytest.mark.parametrize('token', [None, ''])",
    "pass  # nothing to do",
    "0 passed, 3 failed in 1.24s",
    "tests/test_auth.py::test_wrong_password PASSED",
    "pass_rate = passed / total",
    "def bypass(self): return self.passthrough",
    # documentation
    "Set the password in the settings of your account before you log in.",
    "The token is valid for one hour. After that, ask for a new one.",
    "Authentication uses a bearer token in the Authorization header.",
    "Passwords are hashed with bcrypt and never logged.",
    "If you forgot your password, click the link in the mail.",
    "The secret of good code is simplicity.",
    "A key is pressed, and the event handler runs.",
    "The password must have at least 12 characters.",
    "The API key is missing.",
    "Error: the password is wrong or the account is locked.",
    'authentication failed: password authentication failed for user "app"',
    "The access token has expired, please refresh it.",
    "Use `--password-stdin` rather than `--password`.",
    "the password is stored in the keychain",
    "Das Passwort muss mindestens acht Zeichen haben.",
    "Le mot de passe est obligatoire.",
    "La contraseña es obligatoria.",
    "Each token is a word or a piece of a word.",
    "See RFC 6749 section 4.1 for the authorization code grant.",
    "Press the Enter key to continue.",
    "Keys: up/down to move, q to quit.",
    "Basic usage: run the command with no arguments.",
    # hashes, ids and versions
    "commit 307e364b8f2c0a9d1e5f6a7b8c9d0e1f2a3b4c5d\nAuthor: Bob",
    "8f57ccd lint: give every public attribute a type",
    "index 3f2a1b0..9c8d7e6 100644\n--- a/src/auth.py\n+++ b/src/auth.py",
    "@@ -12,7 +12,9 @@ def login(request):\n-    return None\n+    return user",
    "123e4567-e89b-12d3-a456-426614174000",
    "session_id: 0b5e8f3a-6c1d-4e2b-9a7f-1d2c3b4a5e6f",
    "toolu_01A09q90qw90lq917835lq9",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="',
    'sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    'checksum = "8b5e6b2f3c4d1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f"',
    "--hash=sha256:5f3c6b4d2e1a0f9c8b7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b",
    "h1:gB8kzJxJ0vXnX0Yk0N1Vn1CqX0pKqvPqJvUj5l7Xy9A=",
    "Digest: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    'ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "claude-sonnet-4-5-20250929",
    "v20.11.1 linux/amd64 go1.22.3",
    "2026-11-24T22:05:57.123456Z",
    "1732485957123",
    "+1 555 0100 ext. 12",
    "192.168.10.25:5432",
    "fe80::1ff:fe23:4567:890a%eth0",
    "00:1A:2B:3C:4D:5E",
    "#1a2b3c #ffeedd rgba(12, 34, 56, 0.5)",
    # files, paths and commands
    "/home/bob/projects/shop/src/auth/password_reset_controller.rb",
    "C:\\Users\\bob\\AppData\\Local\\Programs\\Python\\Python312\\python.exe",
    "node_modules/@babel/plugin-transform-modules-commonjs/lib/index.js:47:12",
    "-rw-r--r-- 1 bob staff  4096 Nov 24 12:01 passwords.txt",
    "git commit -am 'auth: hash passwords with argon2'",
    "ls -la ~/.ssh && cat ~/.ssh/known_hosts | wc -l",
    "docker run --rm -p 8080:80 -v $PWD:/app -w /app node:20 npm test",
    "ssh -p 2222 deploy@10.0.0.5 'systemctl status shop'",
    "grep -rn 'password' src/ --include='*.py' | head -20",
    "mkdir -p build/output && cp -a dist/. build/output",
    "kubectl get pods -n shop -w",
    "db-7d9f8b6c5d-x2x9z   1/1   Running   0   3d",
    "psql -h localhost -p 5432 -U app shop",
    "rsync -a -P ./site/ web:/srv/site/",
    "curl -fsSL https://example.com/install.sh | sh",
    "https://docs.example.com/en/latest/guides/authentication.html#tokens",
    "https://example.com/search?q=tokens&page=2&sort=desc",
    "git remote -v\norigin\tgit@github.com:acme/shop.git (fetch)",
    "npm install --save-dev @types/jsonwebtoken@9.0.6",
    "Successfully installed cryptography-42.0.5 passlib-1.7.4 python-jose-3.3.0",
    # data
    "!function(e,t){for(var n=0;n<t.length;n++){var r=t[n];"
    "r.enumerable=r.enumerable||!1,Object.defineProperty(e,r.key,r)}}();",
    "var a=b?c:d;function e(f,g){return f.key===g.token?h(f):i(g)}",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
    "| name | type | default |\n|---|---|---|\n| password | string | none |",
    '{"type": "object", "properties": {"password": {"type": "string", "minLength": 8}}, "required": ["password"]}',
    "name,age,city\nbob,41,Berlin\nann,37,Paris",
    # more code and commits
    "def f(token):\n    return token",
    "self.token = token",
    "x = user.password",
    "raise ValueError('bad token')",
    "user: User = Depends(get_current_user)",
    "token = request.headers.get('Authorization')",
    "if (password !== confirmPassword) return;",
    "password: hashedPassword,",
    "const { password, ...rest } = user;",
    "@app.post('/token', response_model=Token)",
    "async def login(form: OAuth2PasswordRequestForm = Depends()):",
    "access_token = create_access_token(data={'sub': user.username}, expires_delta=delta)",
    "this.authService = authService;",
    "constructor(private auth: AuthService) {}",
    "tokens[i].type === TokenType.Ident",
    "let token = self.tokens.next()?;",
    "match token { Token::Ident(name) => name, _ => return }",
    "pub struct Config { pub api_key: Option<String> }",
    "api_key: Option<String>,",
    '#[serde(rename = "apiKey")]',
    "key: 'Enter'",
    "session.pop('user_id', None)",
    "pytest tests/test_auth.py -k token -x",
    "git checkout -b fix/auth-token-refresh",
    "docs/auth/tokens.md",
    "feat(auth): add refresh tokens",
    "* auth: mask tokens",
    "Merge branch 'auth'",
    "The token `abc` is invalid",
    "password_hash = bcrypt.hashpw(password.encode(), bcrypt.gensalt())",
    "SECRET_KEY = config('SECRET_KEY')",
    "token = jwt.encode(payload, SECRET_KEY, algorithm='HS256')",
    "redis: connection refused",
    "connection: keep-alive",
    "cookie_consent=true",
    "<PasswordInput onChange={setPassword} />",
    "password?: string;",
    "readonly token: string | undefined",
    "case 'token':",
    "keys = sorted(d)",
    "auth_required = True",
    "enable_auth: false",
    "pinned: true",
    "npm ERR! code E401",
    "  password: {type: string}",
    "secretName: db-credentials",
    "imagePullSecrets:\n- name: regcred",
    'name = "pass-through"',
    "yarn.lock\n  integrity sha1-abcdefghijklmnopqrstuvwxyz0=",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  file.tar.gz",
    "Author: bob\nCommit: 307e364b8f2c0a9d1e5f6a7b8c9d0e1f2a3b4c5d",
    "actions/checkout@v4",
    "vite@5.2.11",
]
