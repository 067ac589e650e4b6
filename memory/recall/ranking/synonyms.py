"""The finer part of the thesaurus: synonyms, where `concepts` groups words of one topic.

"Who signs off my leave?" and "my line manager is Jia" share `superior`; "gym" and "workout" share `workout`. Texts that
share a synonym usually share the wider concept as well; together they count about as much as one clear word. Written
from general knowledge; development data showed which topics to cover first. Same format as `concepts`: name, words of
English, German and Spanish (underscore: a phrase), then "|" and Chinese words. Data only.
"""

SYNONYMS = """
residence: live lives lived living reside moved relocated home_town hometown near_me nearby close_to_home around_here
 local_area in_my_area near_home neighbourhood neighborhood wohne wohnt wohnen lebe lebt umgezogen gezogen nahe
 in_der_nahe um_die_ecke vivo vive vivir viviendo mudado mudamos mude cerca barrio | 住在 住 搬到 搬去 搬家 搬 定居
 附近 周边 离家 家附近 就近 本地 老家
superior: boss manager supervisor line_manager approve approves approval sign_off report_to leave_request chef chefin
 vorgesetzte vorgesetzter genehmigt genehmigen jefe jefa encargado encargada aprobar aprueba | 领导 老板 上司 经理
 主管 总监 批 审批 批准 请假 直属 汇报 签字
staff: staff employee employees assistant apprentice understaffed short_staffed rota roster shift shifts days_off
 mitarbeiter angestellte azubi personal schicht plantilla empleado empleada turno | 店员 员工 伙计 帮工 人手 排班 轮班
 轮休 值班 临时工 学徒 帮手
colleague: colleague colleagues coworker coworkers teammate workmate kollege kollegin kollegen compañero compañera |
 同事 搭档 队友
jobtitle: profession occupation job_title for_a_living line_of_work work_as works_as beruf arbeitet_als profesion
 trabaja_como trabajo_como | 职业 做什么工作 从事 行业 岗位
workout: exercise exercises gym workout workouts fitness cardio circuit squat squats burpees plank weights lifting
 pilates yoga stretch training trainieren fitnessstudio krafttraining gimnasio entrenar entreno entrenamiento pesas |
 健身 锻炼 健身房 瑜伽 普拉提 力量 有氧 深蹲 私教 撸铁 练腿
running: run runs running jog jogging marathon half_marathon race pace laufen joggen lauf correr carrera maraton |
 跑步 跑 慢跑 夜跑 晨跑 马拉松 半马 全马 配速
swimming: swim swims swam swimming pool laps schwimmen schwimmt freibad hallenbad nadar nada natacion piscina | 游泳
 泳池
cycling: bike bikes bicycle cycle cycles cycling cyclist fahrrad rad radfahren radeln bici bicicleta | 自行车 骑车
 骑行 单车
injury: injury injured tore torn sprain sprained ligament broke fracture broken_leg broken_arm ankle knee wrist
 shoulder back_pain verletzt verletzung verstaucht knochel lesion lesionado esguince tobillo rodilla | 受伤 扭伤 骨折
 拉伤 脚踝 膝盖 腰伤 韧带
commute: get_to get_there getting_to way_to commute commutes commuting drive drives driving car cycle cycling bike bus
 train tram subway metro walk on_foot pendeln fahre fahrt hinkommen hinfahren zu_fuss wie_komme desplazo llegar
 como_llego como_voy andando conduzco | 怎么去 怎么走 怎么过去 通勤 上下班 开车 骑车 坐地铁 地铁 公交 打车 走路 步行
break: holiday holidays vacation long_weekend days_off getaway bank_holiday easter_break summer_break winter_break
 urlaub ferien brückentag feiertage vacaciones puente festivo | 假期 放假 长假 小长假 黄金周 五一 十一 国庆 端午 中秋
 清明 元旦 春节 寒假 暑假 年假
destination: where_to going_to trip_to travel_to fly_to flying_to visit visiting headed booked reise_nach fahre_nach
 fliegen_nach viaje_a viajo ir_a | 去哪 去哪儿 目的地 旅行 旅游 出游 订好 订了 机票 车票
lodging: hotel hotels hostel guesthouse airbnb bed_and_breakfast accommodation unterkunft ferienwohnung pension
 alojamiento hostal | 酒店 宾馆 民宿 住宿 旅馆 青旅
seat: aisle window_seat aisle_seat seat seats legroom gangplatz fensterplatz sitzplatz asiento pasillo ventanilla |
 座位 靠窗 靠过道 选座
petfeeding: feed feeds feeding fed kibble dry_food wet_food cat_food dog_food portion grams overweight_cat bowl futter
 futtern napf pienso alimentar | 喂 猫粮 狗粮 喂食 罐头 冻干
petcare: pet_sitter vet puppy kitten litter leash grooming cat cats dog dogs rabbit rabbits tierarzt hund katze katzen
 kaninchen veterinario perro gato conejo | 宠物 猫 狗 兔子 兽医 遛狗 猫砂 寄养 铲屎
dentist: dentist dental tooth teeth toothache filling zahnarzt zahn zahne dentista muela diente dientes | 牙医 牙 牙齿
 牙疼 补牙 洗牙 拔牙
bloodpressure: blood_pressure hypertension salt low_salt sodium bluthochdruck blutdruck salzarm tension_alta
 hipertension | 血压 高血压 降压 少盐 低盐
allergy: allergic allergy allergies intolerance intolerant react_to reaction anaphylaxis epipen sting stings hay_fever
 allergisch allergie unvertraglich unvertraglichkeit stich wespe alergico alergica alergia intolerancia | 过敏 不耐受
 忌口 过敏原 过敏反应
outdoors: picnic barbecue camping hike outdoors park garden_party beach wasp wasps insects mosquito picknick grillen
 wandern wespe wespen wespenstiche freien picnic acampar avispa avispas mosquito mosquitos | 野餐 露营 户外 烧烤 徒步
 郊游 蚊子
medicine: pill pills tablet tablets medication medicine dose prescription tabletten medikament medikamente pastilla
 pastillas medicamento medicacion | 药 吃药 药片 服药 用药 处方
meatless: vegan vegetarian meat_free meatless plant_based no_meat vegetarisch veganer vegetarier fleischlos
 vegetariano vegetariana vegano | 素食 吃素 不吃肉 纯素
cooking: cook cooks cooking recipe recipes dinner_idea meal_plan ingredients kochen kocht rezept cocinar cocina receta
 | 做饭 做菜 菜谱 食谱 下厨 烹饪 晚饭
spicy: spicy hot_food chili chilli pepper scharf picante | 辣 吃辣 辣椒 微辣
coffee: coffee espresso latte cappuccino flat_white caffeine decaf kaffee koffein cafe cafeina | 咖啡 拿铁 美式 咖啡因
tea: tea oolong matcha herbal_tea tee kraeutertee infusion | 茶 绿茶 红茶 乌龙 普洱
alcohol: alcohol beer wine whisky cocktail sober drunk bier wein alkohol cerveza vino | 酒 啤酒 红酒 白酒 喝酒 戒酒
baking: bake bakes baking cake bread loaf dough oven flour backen gebacken kuchen brot teig hornear tarta masa | 烘焙
 烤 蛋糕 面包 烤箱 面粉
varnish: varnish lacquer finish oil wax stain linseed sand sanding polish lack lackieren lasur leinol wachs holzol
 barniz barnizar laca aceite_de_linaza cera | 油漆 清漆 木蜡油 打蜡 上漆 木油
woodwork: furniture wood wooden carpenter joiner table chair shelf cabinet mobel holz schreiner tischler regal muebles
 madera carpintero | 家具 木头 木工 实木 柜子
password: password passcode pin login credentials passwort kennwort contraseña clave | 密码 口令 登录
wifi: wifi router broadband internet_provider wlan internetanbieter banda_ancha | 宽带 网络 无线 路由器
landlordrent: landlord landlady tenant lease rent deposit vermieter miete mietvertrag kaution casero alquiler fianza |
 房东 租 房租 租金 押金 租约 合租
mortgage: mortgage house_price down_payment kredit hypothek hipoteca entrada | 房贷 首付 月供 贷款
salary: salary wage income earn earns raise pay_rise payslip gehalt lohn verdient sueldo salario nomina gana | 工资
 薪水 收入 年薪 月薪 涨薪
savings: savings save saving saved invest investing emergency_fund gespart sparen ahorros ahorrar | 存款 存钱 理财
 储蓄 基金
born: birthday birthdays born turning turns geburtstag cumpleaños nacio | 生日 出生 过生日
wedding: wedding married marry engaged bride groom anniversary hochzeit heiraten verlobt boda casarse | 婚礼 结婚 订婚
 纪念日
school: school kindergarten nursery preschool grade pupil pupils schule kindergarten kita klasse escuela colegio
 guarderia | 上学 小学 幼儿园 中学 年级 开学
exam: exam exams test_score certification certificate prufung klausur examen oposiciones | 考试 备考 考证 雅思 托福
 成绩
thesis: thesis dissertation supervisor advisor defence defense doktorarbeit masterarbeit tesis tutor_de_tesis | 论文
 导师 答辩 毕业论文
languagelearning: learn_spanish learn_german learn_japanese learning_spanish learning_french language_course
 vocabulary fluent sprachkurs vokabeln curso_de_idiomas | 学日语 学英语 学法语 背单词 口语
instrument: piano guitar violin cello flute clarinet drums saxophone instrument klavier gitarre geige flote
 instrumento guitarra violin | 钢琴 吉他 小提琴 乐器 琴 架子鼓
book: book books novel reading_list author bestseller buch bucher roman libro libros novela | 书 小说 书单 看书 阅读
cinema: film films movie movies cinema director kino pelicula peliculas cine | 电影 影片 看电影
series: tv_series tv_show binge episode season serie staffel temporada | 电视剧 追剧 综艺 剧集
indent: indent indentation tabs spaces formatter linter code_style einruckung sangria | 缩进 空格 代码风格
deployment: deploy deploys deployment release rollout staging production ship_it veroffentlichen desplegar despliegue
 | 部署 上线 发布 灰度
database: database postgres postgresql mysql sqlite mongodb sql schema datenbank base_de_datos | 数据库 建表
testing: unit_test unit_tests test_suite pytest ci pipeline testfall prueba_unitaria | 单元测试 测试用例 自动化测试
phone: phone smartphone iphone android mobile handy smartphone movil telefono | 手机 苹果 安卓 华为
laptop: laptop notebook macbook thinkpad computer rechner ordenador portatil | 电脑 笔记本 台式机
carmodel: car drive drives drove vehicle van auto wagen fahrzeug coche carro conduce | 车 汽车 轿车 开车 电动车 车型
carrepair: brake brakes tyre tyres tire tires garage mechanic inspection service_due mot bremsen reifen werkstatt tuv
 frenos taller itv | 刹车 轮胎 保养 年检 修车 换胎
appointment: appointment checkup booking meeting_at termin verabredung cita | 预约 体检 复诊 约了
wake: wake wakes get_up alarm early_bird aufstehen wecker madrugar despertarme | 起床 早起 闹钟
bedtime: sleep sleeps bed bedtime insomnia schlafen schlaf einschlafen dormir sueño insomnio | 睡 睡觉 失眠 睡眠 熬夜
shoesize: shoe shoes size shoe_size boots sneakers schuhe schuhgrosse zapatos talla | 鞋 鞋码 尺码 球鞋
giftidea: gift gifts present presents geschenk geschenke regalo regalos | 礼物 送礼 送什么 礼品
discount: discount discounts promotion coupon sale regulars loyal_customers rabatt aktion descuento oferta promocion |
 打折 折扣 促销 优惠 老顾客 老客户 会员 八折 九折 满减
floral: florist flower_shop bouquet flowers roses blumenladen strauss blumen floristeria ramo flores | 花店 鲜花 花材
 花束
hairdresser: haircut hairdresser barber friseur frisor peluqueria | 理发 剪发 发型
feedback: feedback critique criticism review_my blunt praise harsh kritik ruckmeldung lob critica elogios | 反馈 批评
 点评 意见 夸
"""
